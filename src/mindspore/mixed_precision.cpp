#include "mindspore/mixed_precision.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "mindspore/counterparts.h"
#include "nn/batch_norm.h"
#include "nn/norm.h"
#include "ops/op.h"
#include "precision/recipe.h"

namespace aloft::amp {
namespace {

void check_type(DType type) {
  if (!is_low(type))
    throw UserError("E0840", "a mixed precision has no such low type")
        .saw(std::string(name_of(type)))
        .need("f16 or bf16");
}

// A second precision would take the place of the first without a word.
void check_fresh(const nn::Module& network) {
  if (network.policy() || !network.policies_below().empty())
    throw UserError("E0805", "the network has a precision already")
        .saw(network.policy() ? network.policy().str() : "layers that have one")
        .advice(
            "call one of the mixed-precision functions, once, and build_train_network() or "
            "Model with level O0 behind it");
}

// An op that there is not would never be met.
void check_ops(const List& list) {
  std::vector<std::string> names;
  for (const OpDef& op : op_table()) names.push_back(op.name.str());
  for (const Listed& entry : list) {
    if (!entry.layer_kind.empty() || std::ranges::find(names, entry.op) != names.end()) continue;
    UserError e("E0809", "a list names an op that there is not");
    e.add_line("saw", in_quotes(entry.op));
    e.add_line("need", "the name of an op, or layer<nn::Linear>() for layers of a kind");
    if (const std::string near = nearest_name(entry.op, names); !near.empty())
      e.add_line("try", in_quotes(near));
    throw e;
  }
}

std::vector<std::string> ops_of(const List& list) {
  std::vector<std::string> ops;
  for (const Listed& entry : list)
    if (entry.layer_kind.empty()) ops.push_back(entry.op);
  return ops;
}

PrecisionRecipe recipe_of(Level level, DType type) {
  PrecisionRecipe recipe;
  recipe.level = level;
  recipe.low = type;
  return recipe;
}

// What runs in the low type is listed, the rest is f32.
PrecisionRecipe white_recipe(const List& list, DType type) {
  PrecisionRecipe recipe = recipe_of(Level::O1, type);
  recipe.allow_ops = ops_of(list);
  recipe.only_allowed = true;
  return recipe;
}

// O1's classes, and what MindSpore keeps in f32 beside them.
PrecisionRecipe auto_recipe(DType type) {
  PrecisionRecipe recipe = recipe_of(Level::O1, type);
  for (const Counterpart& c : auto_black_counterparts())
    if (const OpDef* op = find_op(Name(c.ours));
        op && op->numeric != Numeric::Widen && !op->is_loss)
      if (std::ranges::find(recipe.deny_ops, c.ours) == recipe.deny_ops.end())
        recipe.deny_ops.emplace_back(c.ours);
  return recipe;
}

void set_layers(nn::Module& network, const List& list, const PrecisionRecipe& recipe) {
  for (nn::Module* module : network.modules())
    for (const Listed& entry : list)
      if (!entry.layer_kind.empty() && entry.layer_kind == module->kind())
        module->set_policy(Policy(recipe));
}

}  // namespace

List get_white_list() {
  List list;
  for (const Counterpart& c : white_counterparts()) {
    const auto is_same = [&](const Listed& entry) { return entry.op == c.ours; };
    if (!c.ours.empty() && std::ranges::none_of(list, is_same)) list.push_back(op(c.ours));
  }
  return list;
}

List get_black_list() { return {layer<nn::BatchNorm2d>(), layer<nn::LayerNorm>()}; }

MixedForm mix(nn::Module& network, std::string_view level, DType type,
              const scalar::ScalerRule& scale) {
  check_type(type);
  if (level == "O0") return {};
  check_fresh(network);
  const auto set = [&](PrecisionRecipe recipe) {
    using enum scalar::ScalerKind;
    if (scale.kind != None) {
      recipe.scale = scale.kind == Fixed ? ScalePolicy::Fixed : ScalePolicy::Dynamic;
      recipe.scale_values = scale;
    }
    network.set_policy(Policy(recipe));
  };
  if (level == "O1") {
    set(white_recipe(get_white_list(), type));
  } else if (level == "O2") {
    set(recipe_of(Level::O2, type));
  } else if (level == "O3") {
    set(recipe_of(Level::O3, type));
  } else if (level == "auto") {
    set(auto_recipe(type));
    return {};
  } else {
    throw UserError("E0840", "MindSpore has no such level")
        .saw(in_quotes(level))
        .need("O0, O1, O2, O3 or auto")
        .advice("amp::initialize takes whole recipes, such as \"O2:bf16 deny_ops=softmax\"");
  }
  return {true};
}

MixedForm mix(nn::Module& network, const CustomLists& lists, DType type) {
  check_type(type);
  const bool has_white = lists.white_list.has_value();
  if (has_white == lists.black_list.has_value())
    throw UserError("E0840", "custom_mixed_precision() goes by one list")
        .saw(has_white ? "a white list and a black list" : "no list")
        .need("either white_list or black_list");
  check_fresh(network);
  const List& list = has_white ? *lists.white_list : *lists.black_list;
  check_ops(list);
  if (has_white) {
    network.set_policy(Policy(white_recipe(list, type)));
    set_layers(network, list, recipe_of(Level::O3, type));
  } else {
    PrecisionRecipe rest = recipe_of(Level::O3, type);
    rest.deny_ops = ops_of(list);
    network.set_policy(Policy(rest));
    set_layers(network, list, PrecisionRecipe{});
  }
  return {true};
}

}  // namespace aloft::amp

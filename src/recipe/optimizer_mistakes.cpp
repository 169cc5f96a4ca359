#include "recipe/optimizer_mistakes.h"

#include <fmt/format.h>

#include <algorithm>

#include "precision/decide.h"
#include "recipe/recipe_fields.h"
#include "recipe/recipe_leaves.h"
#include "recipe/recipe_names.h"

namespace aloft {
namespace {

class Checks {
 public:
  Checks(const Recipe& recipe, bool others_fit) : recipe_(recipe), others_fit_(others_fit) {}

  std::vector<KeyMistake> all() && {
    check_weight_forms();
    check_update();
    check_options();
    check_groups();
    if (found_.empty()) check_states();  // a rule is made of options that fit
    return std::move(found_);
  }

 private:
  void mistake(const std::string& key, std::string text) {
    found_.push_back({key, std::move(text)});
  }
  std::string origin(const std::string& key) const { return origin_of(recipe_, key); }

  // Options out of their limits, and those that do not fit together.
  void check_options() {
    const OptimizerSection& o = recipe_.optimizer;
    const optim::OptimizerKind* kind = optim::find_optimizer_kind(o.kind);
    if (!kind) return;
    bool in_limits = true;
    for (const optim::OptimizerSetting& s : kind->settings) {
      const auto* usual = std::get_if<std::vector<double>>(&s.fallback);
      if (!usual) continue;  // read as one of its limits
      SettingValue value = o.options.find(s.key)->second;
      std::string need = need_of(s, value);
      if (std::get<std::vector<double>>(value).size() != usual->size())
        need = usual->size() == 2 ? "two numbers" : fmt::format("{} numbers", usual->size());
      const std::string key = "optimizer." + std::string(s.key);
      if (!need.empty()) mistake(key, key + ": need " + need);
      in_limits = in_limits && need.empty();
    }
    const auto misfit = in_limits ? kind->misfit(o.options) : std::nullopt;
    if (!misfit) return;
    const std::string key = "optimizer." + std::string(misfit->key),
                      other = "optimizer." + std::string(misfit->other);
    mistake(key, fmt::format("{}: needs {} {}, which is {} ({})", key, other, misfit->need,
                             str(o.options.find(misfit->other)->second), origin(other)));
  }

  // A group is there for a number of its own, or to keep its parameters from one behind it.
  void check_groups() {
    const auto has_none = [](const ParameterGroup& group) {
      return std::ranges::none_of(
          kGroupNumbers, [&](const GroupNumber& n) { return (group.*n.member).has_value(); });
    };
    std::vector<std::string_view> names;
    for (const GroupNumber& n : kGroupNumbers) names.push_back(n.name);
    const std::vector<ParameterGroup>& groups = recipe_.optimizer.groups;
    for (std::size_t i = groups.size(); i-- > 0 && has_none(groups[i]);)
      mistake(kGroupsKey, fmt::format("{}[{}]: does nothing; need one of {}", kGroupsKey, i,
                                      fmt::join(names, ", ")));
  }

  // Forms of weights that only some precisions have.
  void check_weight_forms() {
    const OptimizerSection& o = recipe_.optimizer;
    const auto check = [&](bool is_asked, std::string_view problem, const char* key,
                           const char* what, const char* advice) {
      if (!is_asked || problem.empty() || !others_fit_) return;
      mistake(key, fmt::format("{}: {}; precision is '{}': {}; use {}", key, what,
                               print_precision(recipe_.precision), problem, advice));
    };
    check(state_format_named(o.master) == StateFormat::Split,
          split_master_problem(recipe_.precision), "optimizer.master",
          "split masters need bf16 weights and O2",
          recipe_.precision.layers_are_auto ? "precision adaptive:bf16, or master = \"f32\""
                                            : "precision O2:bf16, or master = \"f32\"");
    check(o.rounding == name_of(Rounding::Stochastic),
          stochastic_rounding_problem(recipe_.precision), "optimizer.rounding",
          "stochastic is of bf16 weights without masters",
          "precision O3:bf16, or rounding = \"nearest\"");
  }

  // Masters and states in fewer bits, of formulas that bear them.
  void check_states() {
    const UpdateRule rule = optimizer_rule(recipe_.optimizer);
    const auto states = state_format_named(recipe_.optimizer.states);
    if (!rule) return;
    if (rule.formula->is_of_tensors &&
        state_format_named(recipe_.optimizer.master) == StateFormat::Split)
      mistake("optimizer.master",
              fmt::format("optimizer.master: {} is of whole tensors, whose masters are f32; "
                          "set master = \"f32\"",
                          rule.name()));
    if (states == StateFormat::F32) return;
    if (rule.formula->states.empty())
      mistake("optimizer.states",
              fmt::format("optimizer.states: {} keeps no states; use \"f32\"", rule.name()));
    else if (rule.formula->needs_whole_states)
      mistake("optimizer.states",
              fmt::format("optimizer.states: {} needs its states whole; use \"f32\"", rule.name()));
    else if (rule.formula->is_of_tensors && states == StateFormat::Block8)
      mistake("optimizer.states",
              fmt::format("optimizer.states: {} is of whole tensors, whose states are f32 or bf16",
                          rule.name()));
  }

  void check_update() {
    if (recipe_.optimizer.update != "early") return;
    const auto clips = [&](const std::string& what, double limit, const std::string& key) {
      if (limit > 0)
        mistake("optimizer.update",
                fmt::format("optimizer.update: an early update cannot clip, and {} is {} ({}); set "
                            "clip_norm = 0, or update = \"late\"",
                            what, limit, origin(key)));
    };
    clips("clip_norm", recipe_.optimizer.clip_norm, "optimizer.clip_norm");
    const std::vector<ParameterGroup>& groups = recipe_.optimizer.groups;
    for (std::size_t i = 0; i < groups.size(); ++i)
      clips(fmt::format("{}[{}].clip_norm", kGroupsKey, i), groups[i].clip_norm.value_or(0),
            kGroupsKey);
    const PrecisionRecipe& precision = recipe_.precision;
    if (others_fit_ && found_.empty() &&
        scaler_rule(at_its_lowest(precision)).kind != scalar::ScalerKind::None)
      mistake("optimizer.update",
              fmt::format("optimizer.update: an early update cannot skip a step, and the loss "
                          "scale of '{}' does; use {}, or update = \"late\"",
                          print_precision(precision), in_bf16(precision)));
  }

  // What is to be measured yet, as it is where the low type that it names is chosen.
  static PrecisionRecipe at_its_lowest(const PrecisionRecipe& precision) {
    PrecisionRecipe low;
    low.level = Level::O2;
    if (!precision.low_is_auto) low.low = precision.low;
    return resolve_auto(precision, low, "");
  }
  static const char* in_bf16(const PrecisionRecipe& precision) {
    const bool has_scale =
        precision.scale != ScalePolicy::Auto && precision.scale != ScalePolicy::None;
    if (has_scale) return "bf16 without a loss scale";
    return precision.layers_are_auto ? "adaptive:bf16" : "bf16";
  }

  const Recipe& recipe_;
  bool others_fit_;
  std::vector<KeyMistake> found_;
};

}  // namespace

std::vector<KeyMistake> optimizer_mistakes(const Recipe& recipe, bool others_fit) {
  return Checks(recipe, others_fit).all();
}

std::string origin_of(const Recipe& recipe, const std::string& key) {
  const auto it = recipe.origin.find(key);
  return it == recipe.origin.end() ? "default" : it->second;
}

}  // namespace aloft

// MindSpore's levels and lists: which op computes in which type, held to the lists of its package
// (tests/fixtures/mindspore.json).
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "e2e/refusal.h"
#include "e2e/training.h"
#include "mindspore/counterparts.h"
#include "mindspore/mixed_precision.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/sequential.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "ops/op.h"
#include "ops/softmax.h"
#include "optim/momentum.h"
#include "precision/decide.h"

namespace aloft::e2e {
namespace {

struct Network : nn::Module {
  nn::Linear up{*this, "up", 8, 16};
  nn::LayerNorm norm{*this, "norm", 16};
  nn::Linear down{*this, "down", 16, 4};
  Tensor operator()(const Tensor& x) const { return down(softmax(relu(norm(up(x))), -1)); }
};

Tensor some_rows() {
  std::vector<float> values(4 * 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) / 7 - 0.4f;
  return from_floats(values, {4, 8});
}

// The policy that a level gives a network.
PrecisionRecipe recipe_of(std::string_view level) {
  Network network;
  amp::auto_mixed_precision(network, level);
  return network.policy().recipe();
}

Decision decided(const PrecisionRecipe& recipe, const OpDef& op, DType input,
                 Phase phase = Phase::Forward) {
  DecisionQuery q;
  q.op = op.name.str();
  q.numeric = op.numeric;
  q.is_loss = op.is_loss;
  q.is_norm = op.is_norm;
  q.phase = phase;
  q.inputs = std::span(&input, 1);
  return decide(q, recipe);
}

nlohmann::json lists() { return parse_json(read_file("tests/fixtures/mindspore.json"))["lists"]; }

// The ops here of a list there; its entries are those of the fixture.
std::vector<std::string> ours(std::span<const amp::Counterpart> rows,
                              const nlohmann::json& theirs) {
  std::vector<std::string> names, ops;
  for (const amp::Counterpart& row : rows) {
    names.emplace_back(row.theirs);
    if (row.ours.empty()) continue;
    for (const std::string_view op : split(row.ours, ',')) {
      EXPECT_NE(find_op(Name(op)), nullptr) << op;
      ops.emplace_back(op);
    }
  }
  EXPECT_EQ(nlohmann::json(names), theirs);
  return ops;
}

bool has(const std::vector<std::string>& list, const OpDef& op) {
  return std::ranges::find(list, op.name.str()) != list.end();
}

TEST(MindsporeLevels, O1ComputesWhatTheWhiteListNamesInTheLowType) {
  use_cpu();
  const auto white = ours(amp::white_counterparts(), lists()["AMP_WHITE_LIST"]);
  const PrecisionRecipe recipe = recipe_of("O1");
  int low = 0;
  for (const OpDef& op : op_table()) {
    if (op.numeric == Numeric::Exact || op.is_loss) continue;
    const bool is_white = has(white, op);
    low += is_white;
    const Decision d = decided(recipe, op, DType::F32);
    EXPECT_EQ(d.store, is_white ? DType::F16 : DType::F32) << op.name.str();
    EXPECT_EQ(decided(recipe, op, DType::F16).store, d.store) << op.name.str();
  }
  EXPECT_GE(low, 5);
}

TEST(MindsporeLevels, AutoComputesTheBlackListInF32) {
  use_cpu();
  const nlohmann::json all = lists();
  const auto white = ours(amp::auto_white_counterparts(), all["AMP_AUTO_WHITE_LIST"]);
  const auto black = ours(amp::auto_black_counterparts(), all["AMP_AUTO_BLACK_LIST"]);
  const PrecisionRecipe recipe = recipe_of("auto");
  for (const OpDef& op : op_table()) {
    if (has(white, op))
      EXPECT_EQ(decided(recipe, op, DType::F32).store, DType::F16) << op.name.str();
    if (!has(black, op)) continue;
    const Decision d = decided(recipe, op, DType::F16);
    EXPECT_EQ(d.store, DType::F32) << op.name.str();
    EXPECT_EQ(d.compute, DType::F32) << op.name.str();
  }
  // Neither white nor black: the types of the inputs.
  const OpDef& follows = op_named(Name("gelu"));
  EXPECT_EQ(decided(recipe, follows, DType::F16).store, DType::F16);
  EXPECT_EQ(decided(recipe, follows, DType::F32).store, DType::F32);
}

TEST(MindsporeLevels, TheBlackListOfO2IsTheNorms) {
  EXPECT_EQ(lists()["AMP_BLACK_LIST"],
            nlohmann::json({"nn.BatchNorm1d", "nn.BatchNorm2d", "nn.BatchNorm3d", "nn.LayerNorm"}));
  const PrecisionRecipe o2 = recipe_of("O2"), o3 = recipe_of("O3");
  for (const char* norm : {"batch_norm", "layer_norm"}) {
    EXPECT_EQ(decided(o2, op_named(Name(norm)), DType::F16).compute, DType::F32) << norm;
    EXPECT_EQ(decided(o3, op_named(Name(norm)), DType::F16).compute, DType::F16) << norm;
  }
  for (const char* op : {"linear", "conv2d", "relu", "add"}) {
    EXPECT_EQ(decided(o2, op_named(Name(op)), DType::F32).store, DType::F16) << op;
    EXPECT_EQ(decided(o3, op_named(Name(op)), DType::F32).store, DType::F16) << op;
  }
}

TEST(MindsporeLevels, LeaveParametersInF32AndGiveF32) {
  use_cpu();
  for (const char* level : {"O0", "O1", "O2", "O3", "auto"}) {
    Network network;
    std::vector<DType> seen;
    network.up.on_output([&](const Tensor&, const Tensor& y) { seen.push_back(y.dtype()); });
    network.norm.on_output([&](const Tensor&, const Tensor& y) { seen.push_back(y.dtype()); });
    const auto net = amp::auto_mixed_precision(network, level, DType::BF16);
    const Tensor y = net(some_rows());
    const std::string name = level;
    const DType low = DType::BF16, wide = DType::F32;
    EXPECT_EQ(y.dtype(), name == "auto" ? low : wide) << level;
    const bool is_all = name == "O2" || name == "O3";
    EXPECT_EQ(seen, (std::vector{name == "O0" ? wide : low, is_all ? low : wide})) << level;
    for (const VariablePtr& p : network.parameters()) EXPECT_EQ(p->type.dtype, wide) << level;
  }
}

TEST(MindsporeLevels, GradientsOfWhatIsF32AreF32) {
  use_cpu();
  Network network;
  // White: the first product alone.
  const auto net = amp::custom_mixed_precision(
      network, {.white_list = amp::List{amp::layer<nn::LayerNorm>()}}, DType::BF16);
  net(some_rows());
  const PrecisionRecipe& recipe = network.policy().recipe();
  const OpDef& product = op_named(Name("matmul"));
  EXPECT_EQ(decided(recipe, product, DType::F32, Phase::Backward).compute, DType::F32);
  EXPECT_EQ(decided(recipe, product, DType::BF16, Phase::Backward).compute, DType::BF16);
}

std::vector<DType> types_under(const amp::CustomLists& lists) {
  Network network;
  std::vector<DType> seen;
  const auto look = [&](const Tensor&, const Tensor& y) { seen.push_back(y.dtype()); };
  network.up.on_output(look), network.norm.on_output(look), network.down.on_output(look);
  const auto net = amp::custom_mixed_precision(network, lists);
  EXPECT_EQ(net(some_rows()).dtype(), DType::F32);
  return seen;
}

TEST(MindsporeCustom, WhiteListsNameWhatIsLow) {
  use_cpu();
  using Types = std::vector<DType>;
  const DType f16 = DType::F16, f32 = DType::F32;
  EXPECT_EQ(types_under({.white_list = amp::get_white_list()}), (Types{f16, f32, f16}));
  EXPECT_EQ(types_under({.white_list = amp::List{}}), (Types{f32, f32, f32}));
  EXPECT_EQ(types_under({.white_list = amp::List{amp::op("layer_norm")}}), (Types{f32, f16, f32}));
  EXPECT_EQ(types_under({.white_list = amp::List{amp::layer<nn::LayerNorm>()}}),
            (Types{f32, f16, f32}));
  amp::List more = amp::get_white_list();
  more.push_back(amp::layer<nn::LayerNorm>());
  EXPECT_EQ(types_under({.white_list = more}), (Types{f16, f16, f16}));
}

TEST(MindsporeCustom, BlackListsNameWhatIsF32) {
  use_cpu();
  using Types = std::vector<DType>;
  const DType f16 = DType::F16, f32 = DType::F32;
  EXPECT_EQ(types_under({.black_list = amp::List{}}), (Types{f16, f16, f16}));
  EXPECT_EQ(types_under({.black_list = amp::get_black_list()}), (Types{f16, f32, f16}));
  EXPECT_EQ(types_under({.black_list = amp::List{amp::op("linear")}}), (Types{f32, f16, f32}));
  EXPECT_EQ(types_under({.black_list = amp::List{amp::layer<nn::Linear>()}}),
            (Types{f32, f16, f32}));
  EXPECT_EQ(types_under({.black_list = amp::List{amp::layer<nn::Embedding>()}}),
            (Types{f16, f16, f16}));
}

struct Own : nn::Layer {
  using Layer::Layer;
  static constexpr std::string_view kKind = "Own";
  std::string_view kind() const override { return kKind; }
  Tensor operator()(Operand x) const {
    return call(x, [](const Tensor& t) { return t * 2.0; });
  }
};

TEST(MindsporeCustom, ListsNameClassesOfAProgramsOwn) {
  use_cpu();
  struct Two : nn::Layer {
    Own first{*this, "first"}, second{*this, "second"};
    nn::LayerNorm norm{*this, "norm", 8};
    Tensor operator()(Operand x) const {
      return call(x, [&](const Tensor& t) { return second(norm(first(t))); });
    }
  } network;
  std::vector<DType> seen;
  const auto look = [&](const Tensor&, const Tensor& y) { seen.push_back(y.dtype()); };
  network.first.on_output(look), network.norm.on_output(look), network.second.on_output(look);
  amp::custom_mixed_precision(network, {.white_list = amp::List{amp::layer<Own>()}})(some_rows());
  EXPECT_EQ(seen, (std::vector{DType::F16, DType::F32, DType::F16}));
}

// A layer in f32 whose result is rounded is what a norm of O2 is.
TEST(MindsporeCustom, TheListsThatLevelsHaveGiveTheLevels) {
  use_cpu();
  const auto outputs = [](auto make) {
    manual_seed(3);
    Network network;
    return make(network)(some_rows()).to_floats();
  };
  EXPECT_EQ(outputs([](Network& n) { return amp::auto_mixed_precision(n, "O1"); }),
            outputs([](Network& n) {
              return amp::custom_mixed_precision(n, {.white_list = amp::get_white_list()});
            }));
  EXPECT_EQ(outputs([](Network& n) { return amp::auto_mixed_precision(n, "O2"); }),
            outputs([](Network& n) {
              return amp::custom_mixed_precision(n, {.black_list = amp::get_black_list()});
            }));
}

TEST(MindsporeLevels, TrainToTheSameBitsInBothModes) {
  use_cpu();
  for (const char* level : {"O0", "O1", "O2", "O3", "auto"}) {
    std::map<std::string, std::string> states[2];
    for (const bool is_compiled : {false, true}) {
      manual_seed(5);
      Network network;
      const auto net = amp::auto_mixed_precision(network, level);
      Optimizer opt(optim::Momentum{.lr = 0.05}, network.parameters(), scalar::fixed_scaler(64));
      auto step = [&](const Tensor& x, const Tensor& label) {
        return minimize(cross_entropy(net(x), label), opt);
      };
      auto compiled = compile(step);
      const Tensor label = from_ints({0, 1, 2, 3}, {4});
      double first = 0, last = 0;
      for (int i = 0; i < 5; ++i) {
        const StepResult r = is_compiled ? compiled(some_rows(), label) : step(some_rows(), label);
        (i == 0 ? first : last) = r.loss();
      }
      EXPECT_LT(last, first) << level;
      states[is_compiled] = state_of(network, opt);
    }
    EXPECT_EQ(states[0], states[1]) << level;
  }
}

TEST(MindsporeCustom, RefuseWhatIsNoList) {
  use_cpu();
  Network network;
  const amp::List list = amp::get_white_list();
  expect_words(refusal([&] {
                 amp::custom_mixed_precision(network, {list, list});
               }),
               {"E0840", "a white list and a black list", "either white_list or black_list"});
  EXPECT_EQ(code_of([&] { amp::custom_mixed_precision(network, {}); }), "E0840");
  expect_words(refusal([&] {
                 amp::custom_mixed_precision(network, {.white_list = amp::List{amp::op("lineer")}});
               }),
               {"E0809", "lineer", "\"linear\""});
  EXPECT_EQ(code_of([&] { amp::auto_mixed_precision(network, "O2", DType::F32); }), "E0840");
  expect_words(refusal([&] { amp::auto_mixed_precision(network, "O5"); }), {"E0840", "O5", "auto"});
  EXPECT_FALSE(network.policy());  // nothing of it has happened
  amp::auto_mixed_precision(network, "O0");
  amp::custom_mixed_precision(network, {.black_list = amp::List{amp::layer<nn::Linear>()}});
  EXPECT_EQ(code_of([&] { amp::auto_mixed_precision(network, "O2"); }), "E0805");
  EXPECT_EQ(code_of([&] { amp::custom_mixed_precision(network, {.white_list = list}); }), "E0805");
  Network prepared;
  amp::initialize(prepared, optim::Momentum{.lr = 0.1}, "O2:bf16");
  EXPECT_EQ(code_of([&] { amp::auto_mixed_precision(prepared, "O2"); }), "E0805");
}

}  // namespace
}  // namespace aloft::e2e

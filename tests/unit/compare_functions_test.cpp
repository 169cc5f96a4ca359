// Functions of two dumps: which call of the one is which of the other, whatever their running
// numbers are, and that a mistake in a call is named all the same.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "dump_records.h"
#include "observe/compare/difference.h"
#include "observe/compare/divergence.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

// A call of a function as a dump has it.
struct Function {
  std::string tap;    // "h.0/add#1"; of msprobe's dumps the caller, "Module.h.0.Block.forward.0"
  double gives = 1;   // its norm
  double takes = 0;   // 0: not recorded
  double weight = 0;  // a second operand; 0: none
  bool is_backward = false;
  std::vector<int> shape = {4, 4};

  std::string op() const {
    const std::size_t slash = tap.rfind('/');
    const std::string call = tap.substr(slash + 1);
    return call.substr(0, call.find_first_of(".#"));
  }
  Json entry() const {
    Json in = Json::array();
    for (const double norm : {takes, weight})
      if (norm > 0) in.push_back(tensor(shape, norm));
    const Json out = Json::array({tensor(shape, gives)});
    if (is_backward) return {{"input", in}, {"output", out}};
    return {{"input_args", in}, {"input_kwargs", Json::object()}, {"output", out}};
  }
};

class CompareFunctions : public ::testing::Test {
 protected:
  // Of Aloft: running numbers by op and direction, and the taps' names.
  DumpFile dump(const std::string& name, const std::vector<Function>& calls) {
    Json data = Json::object(), taps = Json::object();
    std::map<std::string, int> numbers;
    for (const Function& f : calls) {
      const std::string kind = f.op() + (f.is_backward ? ".backward" : ".forward");
      const std::string entry = "Torch." + f.op() + "." + std::to_string(numbers[kind]++) +
                                (f.is_backward ? ".backward" : ".forward");
      data[entry] = f.entry();
      taps[entry].push_back(f.tap);
    }
    return read(name, {{"task", "statistics"}, {"data", data}, {"taps", taps}});
  }
  // Of msprobe: each call by its name, and who calls it.
  DumpFile foreign(const std::string& name,
                   const std::vector<std::pair<std::string, Function>>& calls) {
    Json data = Json::object(), parents = Json::object();
    for (const auto& [entry, f] : calls) {
      data[entry] = f.entry();
      parents[entry] = f.tap.empty() ? Json(nullptr) : Json(f.tap);
    }
    make_folder(folder_ / name);
    TemporaryFolder::put(folder_ / name / "construct.json", parents.dump());
    return read(name + "/dump", {{"task", "statistics"}, {"data", data}});
  }
  DumpFile read(const std::string& name, const Json& json) {
    const Path file = folder_ / (name + ".json");
    TemporaryFolder::put(file, json.dump());
    return read_dump(file);
  }
  // The first divergence; nothing where there is none. `compared_`: how many pairs there were.
  std::optional<Divergence> parted(const DumpFile& npu, const DumpFile& bench) {
    pairs_ = pair_dumps(npu, bench, {});
    all_ = compare_all(pairs_, [](const RecordPair&) { return nullptr; });
    return first_divergence(all_, npu, {}, &bench);
  }

  TemporaryFolder folder_;
  Pairs pairs_;
  std::vector<Compared> all_;
};

const std::vector<Function> kEager = {
    {"h.0/add#0", 3}, {"h.0.mlp/linear#0", 7}, {"h.0/add#1", 5}, {"head/linear#0", 9}};

TEST_F(CompareFunctions, AProgramThatLacksACallIsNoDivergence) {
  // The first addition is inside of a fused op.
  const DumpFile eager = dump("eager", kEager);
  const DumpFile graph = dump("graph", {kEager[1], kEager[2], kEager[3]});
  EXPECT_FALSE(parted(eager, graph).has_value());
  EXPECT_EQ(all_.size(), 3u);
  EXPECT_FALSE(parted(graph, eager).has_value());
  EXPECT_EQ(all_.size(), 3u);
}

TEST_F(CompareFunctions, AMistakeIsNamedByItsPlace) {
  std::vector<Function> wrong = kEager;
  wrong[2].gives = 5.5;
  const DumpFile graph = dump("graph", {kEager[1], kEager[2], kEager[3]});
  const auto found = parted(dump("eager", wrong), graph);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->module, "h.0");
  EXPECT_EQ(found->kind, "add");
  EXPECT_EQ(found->behind, "h.0.mlp/linear#0");
  EXPECT_NE(found->sentence.find("what h.0/add#1 gives (0) is off"), std::string::npos)
      << found->sentence;
}

// A compiled program fills all constants first: that of a later module's norm does not make this
// module, and the block around it, begin before the module that is wrong.
TEST_F(CompareFunctions, ConstantsDoNotBeginTheirModules) {
  const auto mix = [&](const std::string& name, double given) {
    const auto call = [](double takes, double gives) {
      Json in = Json::array();
      if (takes > 0) in.push_back(tensor({4, 4}, takes));
      return Json{{"input_args", in},
                  {"input_kwargs", Json::object()},
                  {"output", Json::array({tensor({4, 4}, gives)})}};
    };
    const Json data = {{"Torch.full.0.forward", call(0, 1)},
                       {"Torch.linear.0.forward", call(2, given)},
                       {"Module.h.0.Linear.forward.0", call(2, given)},
                       {"Torch.rms_norm.0.forward", call(given, 4 * given)},
                       {"Module.h.1.ln.RMSNorm.forward.0", call(given, 4 * given)},
                       {"Module.h.1.Block.forward.0", call(given, 4 * given)}};
    const Json taps = {{"Torch.full.0.forward", {"h.1.ln/full#0"}},
                       {"Torch.linear.0.forward", {"h.0/linear#0"}},
                       {"Torch.rms_norm.0.forward", {"h.1.ln/rms_norm#0"}}};
    return read(name, {{"task", "statistics"}, {"level", "mix"}, {"data", data}, {"taps", taps}});
  };
  const auto found = parted(mix("wrong", 3.3), mix("right", 3));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->module, "h.0") << found->sentence;
}

// Aloft's are computed beside the op, and stand behind all else; other programs have them under
// the names of what makes them, and masks that are no infinities.
TEST_F(CompareFunctions, WhatIsInsideOfAttentionIsComparedWithWhatOthersCompute) {
  const std::string attn = "Module.h.0.attn.Attention.forward.0";
  const auto ours = [&](double scores, double probabilities, double after) {
    return dump("ours", {{"h.0.attn/linear#0", 8},
                         {"h.0.attn/attention_qkv#0", 7},
                         {"h.0.attn/linear#1", after},
                         {"h.0.attn/attention_scores#0", scores},
                         {"h.0.attn/attention_probabilities#0", probabilities}});
  };
  const auto theirs = [&](double scores, double probabilities, double after) {
    return foreign("theirs", {{"Functional.linear.0.forward", {attn, 8}},
                              {"Tensor.__mul__.0.forward", {attn, 4, 9}},
                              {"Tensor.masked_fill.0.forward", {attn, scores, 4}},
                              {"Tensor.softmax.0.forward", {attn, probabilities, scores}},
                              {"Functional.linear.1.forward", {attn, after}}});
  };
  EXPECT_FALSE(parted(ours(5, 2, 3), theirs(5, 2, 3)).has_value());
  EXPECT_EQ(all_.size(), 4u);
  EXPECT_FALSE(parted(theirs(5, 2, 3), ours(5, 2, 3)).has_value());
  EXPECT_EQ(all_.size(), 4u);
  struct Row {
    double scores, probabilities;
    const char *ours, *theirs;
  };
  for (const Row& row : {Row{6, 2.5, "attention_scores", "masked_fill"},
                         Row{5, 2.5, "attention_probabilities", "softmax"}}) {
    const auto here = parted(ours(row.scores, row.probabilities, 4), theirs(5, 2, 3));
    ASSERT_TRUE(here.has_value());
    EXPECT_EQ(here->kind, row.ours);
    EXPECT_EQ(here->module, "h.0.attn");
    const auto there = parted(theirs(row.scores, row.probabilities, 4), ours(5, 2, 3));
    ASSERT_TRUE(there.has_value());
    EXPECT_EQ(there->kind, row.theirs);
  }
}

// One run has it, and the next call that both have takes something else.
TEST_F(CompareFunctions, AFunctionThatOneRunAloneCallsIsNamed) {
  const std::vector<Function> right = {{"h.0.mlp/linear#0", 7},
                                       {"h.0.mlp/gelu#0", 5},
                                       {"h.0.mlp/reshape#0", 5},
                                       {"h.0.mlp/linear#1", 6}};
  const std::vector<Function> without = {right[0], {"h.0.mlp/linear#1", 9}};
  const auto second = parted(dump("without", without), dump("right", right));
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(second->sentence.find("; before it h.0.mlp calls gelu in the second run alone"),
            std::string::npos)
      << second->sentence;
  ASSERT_EQ(second->functions.size(), 1u);  // what only moves values is none
  EXPECT_EQ(second->functions[0].call, "Torch.gelu.0.forward");
  const auto first = parted(dump("right", right), dump("without", without));
  ASSERT_TRUE(first.has_value());
  EXPECT_NE(first->sentence.find("; before it h.0.mlp calls gelu in the first run alone"),
            std::string::npos)
      << first->sentence;
  // Another one in its place: both.
  std::vector<Function> relu = right;
  relu[1] = {"h.0.mlp/relu#0", 4}, relu[2].gives = 4, relu[3].gives = 8;
  const auto both = parted(dump("relu", relu), dump("right", right));
  ASSERT_TRUE(both.has_value());
  EXPECT_NE(
      both->sentence.find("; before it h.0.mlp calls relu in the first run alone, and h.0.mlp "
                          "calls gelu in the second run alone"),
      std::string::npos)
      << both->sentence;
  // What agrees behind it has nothing to do with it.
  std::vector<Function> later = right;
  later.push_back({"h.0.mlp/mul#0", 3});
  std::vector<Function> scaled = {right[0], right[1], right[3], {"h.0.mlp/mul#0", 4}};
  const auto none = parted(dump("scaled", scaled), dump("later", later));
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->functions.empty()) << none->sentence;
}

// A function whose own inputs agree computes otherwise, whatever was called before it.
TEST_F(CompareFunctions, AFunctionThatTakesTheSameIsNamedAlone) {
  const std::vector<Function> right = {
      {"h.0/linear#0", 7}, {"h.0/gelu#0", 5}, {"h.0/linear#1", 6, 3}};
  const std::vector<Function> wrong = {right[0], {"h.0/linear#1", 9, 3}};
  const auto found = parted(dump("wrong", wrong), dump("right", right));
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->functions.empty()) << found->sentence;
}

TEST_F(CompareFunctions, OpsInAnotherOrderAreTheSame) {
  const DumpFile one = dump("one", {{"h.0.q/linear#0", 3}, {"h.0.k/linear#0", 4}});
  const DumpFile other = dump("other", {{"h.0.k/linear#0", 4}, {"h.0.q/linear#0", 3}});
  EXPECT_FALSE(parted(one, other).has_value());
  EXPECT_EQ(all_.size(), 2u);
}

// Within a module the numbers of what is behind it are others, too.
TEST_F(CompareFunctions, ACastThatOneRunHasMoreIsNoDivergence) {
  const std::vector<Function> graph = {{"h.0/cast#0", 9}, {"h.0/cast#1", 4}};
  const std::vector<Function> eager = {{"h.0/cast#0", 2}, {"h.0/cast#1", 9}, {"h.0/cast#2", 4}};
  EXPECT_FALSE(parted(dump("eager", eager), dump("graph", graph)).has_value());
  EXPECT_EQ(all_.size(), 2u);
  std::vector<Function> wrong = eager;
  wrong[2].gives = 6;
  const auto found = parted(dump("eager", wrong), dump("graph", graph));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->compared->moment.entry->npu->tap, "h.0/cast#2");
}

// `s * z - z * 0.5`: a compiler may make either product first, and number it so.
TEST_F(CompareFunctions, ProductsInAnotherOrderAreTheSame) {
  const std::vector<Function> one = {{"h/mul#0", 3}, {"h/mul#1", 5}, {"h/sub#0", 4}};
  const std::vector<Function> other = {{"h/mul#0", 5}, {"h/mul#1", 3}, {"h/sub#0", 4}};
  EXPECT_FALSE(parted(dump("one", one), dump("other", other)).has_value());
  EXPECT_EQ(all_.size(), 3u);
  // Three of them, each in the place of the next.
  const std::vector<Function> three = {{"h/mul#0", 3}, {"h/mul#1", 5}, {"h/mul#2", 7}};
  const std::vector<Function> turned = {{"h/mul#0", 5}, {"h/mul#1", 7}, {"h/mul#2", 3}};
  EXPECT_FALSE(parted(dump("three", three), dump("turned", turned)).has_value());
  // A product that is wrong stays so, in whatever order, and does not take another's place.
  for (const std::vector<Function>& right : {one, other}) {
    std::vector<Function> wrong = one;
    wrong[0].gives = 3.3;
    const auto found = parted(dump("wrong", wrong), dump("right", right));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->kind, "mul");
  }
  std::vector<Function> twice = one;
  twice[0].gives = 5;  // both make the second one
  EXPECT_TRUE(parted(dump("twice", twice), dump("one", one)).has_value());
}

// silu(gate(x)) * up(x): of two dumps that do not say where calls are made, one makes the gate
// behind what it lets through.
TEST_F(CompareFunctions, AGateBeforeOrBehindIsTheSame) {
  // Without construct.json, as of level "op".
  const auto bare = [&](const std::string& name,
                        const std::vector<std::pair<std::string, Function>>& calls) {
    Json data = Json::object();
    for (const auto& [entry, f] : calls) data[entry] = f.entry();
    return read(name, {{"task", "statistics"}, {"data", data}});
  };
  const auto gives = [](double norm) { return Function{"", norm}; };
  const std::vector<std::pair<std::string, Function>> ours = {{"Torch.linear.0.forward", gives(7)},
                                                              {"Torch.linear.1.forward", gives(4)},
                                                              {"Torch.silu.0.forward", gives(2)},
                                                              {"Torch.mul.0.forward", gives(3)}};
  const std::vector<std::pair<std::string, Function>> theirs = {
      {"Functional.linear.0.forward", gives(4)},
      {"Functional.silu.0.forward", gives(2)},
      {"Functional.linear.1.forward", gives(7)},
      {"Tensor.mul.0.forward", gives(3)}};
  EXPECT_FALSE(parted(bare("ours", ours), bare("theirs", theirs)).has_value());
  EXPECT_EQ(all_.size(), 4u);
  EXPECT_FALSE(parted(bare("theirs", theirs), bare("ours", ours)).has_value());
  EXPECT_EQ(all_.size(), 4u);
  auto wrong = ours;
  wrong[1].second.gives = 4.4;
  EXPECT_TRUE(parted(bare("wrong", wrong), bare("theirs", theirs)).has_value());
}

TEST_F(CompareFunctions, OperandsOfAProductInAnotherOrderAreTheSame) {
  const auto mul = [](double takes, double weight) {
    return Function{"Module.h.Block.forward.0", 6, takes, weight};
  };
  const DumpFile one = foreign("one", {{"Tensor.mul.0.forward", mul(2, 3)}});
  const DumpFile other = foreign("other", {{"Tensor.__rmul__.0.forward", mul(3, 2)}});
  EXPECT_FALSE(parted(one, other).has_value());
  EXPECT_EQ(all_.size(), 3u);
  // The order of a quotient's counts, and so does what is no order.
  const DumpFile ratio = foreign("ratio", {{"Tensor.div.0.forward", mul(2, 3)}});
  const DumpFile inverse = foreign("inverse", {{"Tensor.div.0.forward", mul(3, 2)}});
  EXPECT_TRUE(parted(ratio, inverse).has_value());
  const DumpFile third = foreign("third", {{"Tensor.mul.0.forward", mul(3, 2.2)}});
  EXPECT_TRUE(parted(one, third).has_value());
}

// Of a norm's gradients a compiled program may add the first to another without writing it.
TEST_F(CompareFunctions, AResultThatAProgramLacksIsNoDivergence) {
  const auto dumped = [&](const char* name, const std::vector<std::pair<int, double>>& results) {
    Json out = Json::array(), taps = Json::array();
    for (const auto& [number, norm] : results) {
      out.push_back(tensor({4}, norm));
      taps.push_back("ln/layer_norm_grad.backward#0" +
                     (number ? "." + std::to_string(number) : std::string()));
    }
    const std::string entry = "Torch.layer_norm_grad.0.backward";
    const Json data = {{entry, {{"input", Json::array()}, {"output", out}}}};
    return read(name, {{"task", "statistics"}, {"data", data}, {"taps", {{entry, taps}}}});
  };
  const DumpFile all = dumped("all", {{0, 9}, {1, 3}, {2, 5}});
  EXPECT_FALSE(parted(dumped("some", {{1, 3}, {2, 5}}), all).has_value());
  EXPECT_EQ(all_.size(), 2u);
  EXPECT_FALSE(parted(dumped("last", {{2, 5}}), dumped("middle", {{1, 3}})).has_value());
  const auto found = parted(dumped("wrong", {{1, 3}, {2, 6}}), all);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->compared->records.npu->own, "2");
}

// An add of two gradients is not the gradient of an add, whatever both are called.
TEST_F(CompareFunctions, OpsOfABackwardPassAreNotGradientsOfFunctions) {
  Function sum{"h.0/add.backward#0", 6}, gradient{"Module.h.0.Block.backward.0", 3};
  sum.is_backward = gradient.is_backward = true;
  const Function ours{"h.0/add#0", 3}, theirs{"Module.h.0.Block.forward.0", 3};
  const DumpFile one = dump("one", {ours, sum});
  const DumpFile other =
      foreign("other", {{"Torch.add.0.forward", theirs}, {"Torch.add.0.backward", gradient}});
  EXPECT_FALSE(parted(one, other).has_value());
  EXPECT_EQ(all_.size(), 1u);
}

// Ops of the backward pass are numbered as it comes to them: the last layer's first.
TEST_F(CompareFunctions, BackwardIsInItsOwnOrder) {
  const auto back = [](const char* tap, double gives) {
    Function f{tap, gives};
    f.is_backward = true;
    return f;
  };
  std::vector<Function> right = {{"h.0/linear#0", 3},
                                 {"h.1/linear#0", 4},
                                 back("h.1/linear.backward#0", 6),
                                 back("h.0/linear.backward#0", 7)};
  std::vector<Function> wrong = right;
  wrong[2].gives = 6.5, wrong[3].gives = 7.5;
  const auto found = parted(dump("wrong", wrong), dump("right", right));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->module, "h.1");
  EXPECT_EQ(found->place, "backward");
}

// Under a loss scale gradients are larger; what the backward pass makes of activations is not.
TEST_F(CompareFunctions, AScaledLossScalesGradientsAlone) {
  const auto back = [](const char* tap, double gives) {
    Function f{tap, gives};
    f.is_backward = true;
    return f;
  };
  const auto dumped = [&](const char* name, double scale, double weights, double shaped = 3) {
    DumpFile d = dump(name, {{"h.0/linear#0", 3},
                             back("loss/cross_entropy#0", 5),  // of an op that gives both
                             back("loss/cross_entropy_grad.backward#0", scale * 2),
                             back("h.0/reshape.backward#0", shaped),  // the activation
                             back("h.0/reshape.backward#1", scale * 2),
                             back("h.0/matmul.backward#0", weights)});
    d.training.loss_scale = scale;
    return d;
  };
  const auto said = [&](const DumpFile& npu, const DumpFile& bench) {
    const double factor = bench.training.gradient_factor() / npu.training.gradient_factor();
    pairs_ = pair_dumps(npu, bench, {});
    all_ = compare_all(pairs_, [](const RecordPair&) { return nullptr; }, {factor});
    return first_divergence(all_, npu, {}, &bench);
  };
  const DumpFile plain = dumped("plain", 1, 7), scaled = dumped("scaled", 1024, 1024 * 7);
  for (const auto& [npu, bench] : {std::pair(&scaled, &plain), {&plain, &scaled}}) {
    EXPECT_FALSE(said(*npu, *bench).has_value());
    EXPECT_EQ(all_.size(), 6u);
  }
  const DumpFile wrong = dumped("wrong", 1024, 1024 * 7.5);
  const auto weights = said(wrong, plain);
  ASSERT_TRUE(weights.has_value());
  EXPECT_NE(weights->sentence.find("what h.0/matmul.backward#0 gives"), std::string::npos);
  const DumpFile longer = dumped("longer", 1024, 1024 * 7, 3.5);
  const auto shaped = said(longer, plain);
  ASSERT_TRUE(shaped.has_value());
  EXPECT_EQ(shaped->compared->moment.entry->npu->tap, "h.0/reshape.backward#0");
  // Whose gradients are not scaled at all, although the loop says so, is found.
  DumpFile forgotten = dumped("forgotten", 1, 7);
  forgotten.training.loss_scale = 1024;
  const auto seed = said(forgotten, plain);
  ASSERT_TRUE(seed.has_value());
  EXPECT_EQ(seed->compared->moment.entry->npu->tap, "loss/cross_entropy_grad.backward#0");
}

// Dumps of msprobe say what calls take: the same operands make the same call.
TEST_F(CompareFunctions, WhatIsFedTheSameIsTheSame) {
  const std::string block = "Module.h.0.Block.forward.0";
  const Function q{block, 3, 2, 8}, k{block, 4, 2, 9}, v{block, 5, 2, 10};
  const DumpFile one = foreign("one", {{"Functional.linear.0.forward", q},
                                       {"Functional.linear.1.forward", k},
                                       {"Functional.linear.2.forward", v}});
  const DumpFile other = foreign("other", {{"Functional.linear.0.forward", v},
                                           {"Functional.linear.1.forward", k},
                                           {"Functional.linear.2.forward", q}});
  EXPECT_FALSE(parted(one, other).has_value());
  EXPECT_EQ(all_.size(), 9u);
  Function off = q;
  off.gives = 3.3;
  const DumpFile wrong = foreign("wrong", {{"Functional.linear.0.forward", off},
                                           {"Functional.linear.1.forward", k},
                                           {"Functional.linear.2.forward", v}});
  const auto found = parted(wrong, other);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->compared->moment.entry->npu->name, "Functional.linear.0.forward");
  EXPECT_EQ(found->compared->records.npu->part, Part::Output);
}

// A compiled step has the calls of its last micro-batch, PyTorch's those of all: the losses of two
// are nearly the same, and no two calls of one run are.
TEST_F(CompareFunctions, OfSeveralMicroBatchesTheLastIsCompared) {
  const std::string block = "Module.h.0.Block.forward.0";
  const auto ours = [&](double loss) {
    DumpFile d = dump("ours", {{"h.0/linear#0", 7}, {"h.0/relu#0", 3}, {"h.0/nll_loss#0", loss}});
    d.training.micro_batches = 2;
    return d;
  };
  const DumpFile theirs = foreign("theirs", {{"Functional.linear.0.forward", {block, 7.02}},
                                             {"Functional.relu.0.forward", {block, 3.01}},
                                             {"Functional.nll_loss.0.forward", {block, 5.691}},
                                             {"Functional.linear.1.forward", {block, 7}},
                                             {"Functional.relu.1.forward", {block, 3}},
                                             {"Functional.nll_loss.1.forward", {block, 5.705}}});
  EXPECT_FALSE(parted(ours(5.705), theirs).has_value());
  EXPECT_EQ(all_.size(), 3u);
  EXPECT_FALSE(parted(theirs, ours(5.705)).has_value());
  EXPECT_EQ(all_.size(), 3u);
  // A loss that is wrong is held against the same one, though another is nearer.
  const auto found = parted(ours(5.691), theirs);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->kind, "nll_loss");
  EXPECT_EQ(found->compared->moment.entry->bench->name, "Functional.nll_loss.1.forward");
  EXPECT_EQ(all_.size(), 3u);
}

// Nor does a number say more than what a call gives, where one gives the same.
TEST_F(CompareFunctions, ANumberIsNoReasonBesideACallThatGivesTheSame) {
  const std::string block = "Module.h.0.Block.forward.0";
  const DumpFile one = dump("one", {{"h.0/nll_loss#0", 5.705}});
  const DumpFile two = foreign("two", {{"Functional.nll_loss.0.forward", {block, 5.691}},
                                       {"Functional.nll_loss.1.forward", {block, 5.705}}});
  EXPECT_FALSE(parted(one, two).has_value());
  EXPECT_EQ(all_.size(), 1u);
  EXPECT_FALSE(parted(two, one).has_value());
}

// (x + a) + b beside (a + b) + x, as of a layer whose two branches take the same.
TEST_F(CompareFunctions, SumsOfTheSameTermsInAnotherOrderAreTheSame) {
  const std::string block = "Module.h.0.Block.forward.0";
  const auto ours = [&](double inner, double sum, double a = 30) {
    return dump("ours", {{"h.0/add#0", inner, 17, a}, {"h.0/add#1", sum, inner, 25}});
  };
  const auto theirs = [&](double inner, double sum) {
    return foreign("theirs", {{"Tensor.add.0.forward", {block, inner, 25, 30}},
                              {"Tensor.add.1.forward", {block, sum, inner, 17}}});
  };
  const auto same_order = [&](const char* name, double inner, double sum) {
    return foreign(name, {{"Tensor.add.0.forward", {block, inner, 17, 30}},
                          {"Tensor.add.1.forward", {block, sum, inner, 25}}});
  };
  EXPECT_FALSE(parted(ours(34, 47), theirs(43, 47)).has_value());
  EXPECT_EQ(all_.size(), 1u);  // the whole sum
  EXPECT_FALSE(parted(theirs(43, 47), ours(34, 47)).has_value());
  EXPECT_FALSE(parted(theirs(43, 47), same_order("written", 34, 47)).has_value());
  EXPECT_EQ(all_.size(), 1u);
  // A sum that is wrong is made of the same terms.
  const DumpFile right = theirs(43, 47);
  for (const double inner : {34, 37}) {
    const DumpFile wrong = ours(inner, 50);
    const auto found = parted(wrong, right);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->compared->moment.entry->npu->tap, "h.0/add#1");
    EXPECT_EQ(found->compared->moment.entry->bench->name, "Tensor.add.1.forward");
  }
  // And in the same order the first that is wrong is named.
  const DumpFile wrong = ours(37, 50), written = same_order("first", 34, 47);
  const auto first = parted(wrong, written);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->compared->moment.entry->npu->tap, "h.0/add#0");
  EXPECT_EQ(first->compared->records.npu->part, Part::Output);
  // Of another term it is another sum.
  EXPECT_TRUE(parted(ours(34, 47, 33), theirs(43, 47)).has_value());
  // Of a dump that does not say where calls are made, too.
  const Json data = {{"Tensor.add.0.forward", Function{"", 43, 25, 30}.entry()},
                     {"Tensor.add.1.forward", Function{"", 47, 43, 17}.entry()}};
  const DumpFile bare = read("bare", {{"task", "statistics"}, {"data", data}});
  EXPECT_FALSE(parted(ours(34, 47), bare).has_value());
  EXPECT_EQ(all_.size(), 1u);
}

// A cast of what a head takes, and positions that are moved to a device: each is the only one.
TEST_F(CompareFunctions, ACastOfAnotherValueIsAnotherCall) {
  const std::string block = "Module.h.0.Block.forward.0";
  const auto ours = [&](double takes, double gives) {
    return dump("ours", {{"h.0/cast#0", gives, takes}, {"h.0/linear#0", 7, 28}});
  };
  const DumpFile theirs = foreign("theirs", {{"Tensor.to.0.forward", {block, 13, 13}},
                                             {"Functional.linear.0.forward", {block, 7, 28}}});
  EXPECT_FALSE(parted(ours(28, 28), theirs).has_value());
  EXPECT_EQ(all_.size(), 2u);
  EXPECT_FALSE(parted(theirs, ours(28, 28)).has_value());
  // One of the same that gives something else is named.
  const DumpFile wrong = ours(13, 11);
  const auto found = parted(wrong, theirs);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->kind, "cast");
  // Two of PyTorch's, whose gradients are as different.
  Function gradient{"Module.h.0.Block.backward.0", 2, 2};
  gradient.is_backward = true;
  Function other = gradient;
  other.gives = other.takes = 5;
  const DumpFile one = foreign("one", {{"Tensor.to.0.forward", {block, 28, 28}},
                                       {"Functional.linear.0.forward", {block, 7, 28}},
                                       {"Tensor.to.0.backward", other}});
  const DumpFile two = foreign("two", {{"Tensor.to.0.forward", {block, 13, 13}},
                                       {"Functional.linear.0.forward", {block, 7, 28}},
                                       {"Tensor.to.0.backward", gradient}});
  EXPECT_FALSE(parted(one, two).has_value());
  EXPECT_EQ(all_.size(), 2u);
}

// Without construct.json and taps nobody knows where a call is made.
TEST_F(CompareFunctions, CallsOfNoKnownPlaceArePairedByWhatTheyGive) {
  const auto dumped = [&](const char* name, const std::vector<double>& norms) {
    Json data = Json::object();
    for (std::size_t i = 0; i < norms.size(); ++i)
      data["Torch.add." + std::to_string(i) + ".forward"] = Function{"", norms[i]}.entry();
    return read(name, {{"task", "statistics"}, {"data", data}});
  };
  const DumpFile more = dumped("more", {1, 20, 3, 40}), fewer = dumped("fewer", {1, 3, 40});
  EXPECT_FALSE(parted(more, fewer).has_value());
  EXPECT_EQ(all_.size(), 3u);
  const DumpFile wrong = dumped("wrong", {1, 20, 3.1, 40});
  EXPECT_TRUE(parted(wrong, dumped("right", {1, 20, 3, 40})).has_value());
}

}  // namespace
}  // namespace aloft::compare

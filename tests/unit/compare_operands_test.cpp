// What ops of Aloft's take, beside what the same calls take in another run.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "dump_records.h"
#include "observe/compare/difference.h"
#include "observe/compare/divergence.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

// The norms of what a call takes; 0: null.
struct Taken {
  std::vector<std::pair<double, std::vector<int>>> operands;
  Json list() const {
    Json in = Json::array();
    for (const auto& [norm, shape] : operands)
      in.push_back(norm > 0 ? tensor(shape, norm) : Json());
    return in;
  }
};

const std::vector<int> kRows = {4, 8}, kWeight = {8, 8}, kVector = {8};

class CompareOperands : public ::testing::Test {
 protected:
  // A dump of Aloft's with one call, of what gives a norm of `gives`.
  DumpFile op(const std::string& name, const std::string& tap, const Taken& taken, double gives = 5,
              bool is_backward = false) {
    const std::size_t slash = tap.rfind('/') + 1;
    const std::string entry = "Torch." + tap.substr(slash, tap.find_first_of(".#", slash) - slash) +
                              (is_backward ? ".0.backward" : ".0.forward");
    Json data;
    data[entry] = {{is_backward ? "input" : "input_args", taken.list()},
                   {"output", Json::array({tensor(kRows, gives)})}};
    return read(name, {{"data", data}, {"taps", {{entry, Json::array({tap})}}}});
  }
  // One of PyTorch's.
  DumpFile function(const std::string& name, const std::string& kind, const Json& taken,
                    double gives = 5) {
    const std::string entry = "Functional." + kind + ".0.forward";
    make_folder(folder_ / name);
    TemporaryFolder::put(folder_ / name / "construct.json",
                         Json{{entry, "Module.h.0.Block.forward.0"}}.dump());
    Json data;
    data[entry] = {{"input_args", taken}, {"output", Json::array({tensor(kRows, gives)})}};
    return read(name + "/dump", {{"data", data}});
  }
  DumpFile read(const std::string& name, Json json) {
    json["task"] = "statistics";
    const Path file = folder_ / (name + ".json");
    TemporaryFolder::put(file, json.dump());
    return read_dump(file);
  }
  // The sentence about the first divergence; "" where there is none.
  std::string parted(const DumpFile& npu, const DumpFile& bench) {
    pairs_ = pair_dumps(npu, bench, {});
    all_ = compare_all(pairs_, [](const RecordPair&) { return nullptr; });
    const auto found = first_divergence(all_, npu);
    return found ? found->sentence : "";
  }
  // Of both orders of the two the one sentence.
  std::string parted_either_way(const DumpFile& a, const DumpFile& b) {
    const std::string one = parted(a, b), other = parted(b, a);
    return one.empty() == other.empty() ? one : "one way alone: " + one + other;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  TemporaryFolder folder_;
  Pairs pairs_;
  std::vector<Compared> all_;
};

TEST_F(CompareOperands, ThatAreOffAreNamed) {
  const DumpFile right = op("right", "h.0/linear#0", {{{3, kRows}, {7, kWeight}}});
  const DumpFile wrong = op("wrong", "h.0/linear#0", {{{3, kRows}, {7.5, kWeight}}}, 5.5);
  const std::string said = parted(wrong, right);
  EXPECT_TRUE(has(said, "what h.0/linear#0 takes (1) is off by")) << said;
  EXPECT_EQ(all_.size(), 3u);
}

TEST_F(CompareOperands, AreSaidOfWhatIsOff) {
  const DumpFile right = op("right", "h.0/linear#0", {{{3, kRows}, {0, {}}, {7, kVector}}});
  const DumpFile wrong = op("wrong", "h.0/linear#0", {{{3, kRows}, {0, {}}, {7, kVector}}}, 5.5);
  const std::string said = parted(wrong, right);
  EXPECT_TRUE(has(said, "what h.0/linear#0 gives (0) is off by")) << said;
  EXPECT_TRUE(has(said, "; what it takes agrees: Norm 3 (0), 7 (2)")) << said;
  const std::string back = "h.0/gelu_grad.backward#0";
  const std::string gradient =
      parted(op("a", back, {{{3, kRows}}}, 5.5, true), op("b", back, {{{3, kRows}}}, 5, true));
  EXPECT_TRUE(has(gradient, "; the gradients that reach it agree: Norm 3 (0)")) << gradient;
}

// One run may have more of them than the other.
TEST_F(CompareOperands, ThatOneRunHasAloneAreNoDivergence) {
  const DumpFile whole = op("whole", "h.0/linear#0", {{{3, kRows}, {7, kWeight}, {2, kVector}}});
  const DumpFile part = op("part", "h.0/linear#0", {{{3, kRows}, {0, {}}, {0, {}}}});
  const DumpFile bare = op("bare", "h.0/linear#0", {});
  EXPECT_EQ(parted_either_way(whole, part), "");
  EXPECT_EQ(all_.size(), 2u);
  EXPECT_EQ(parted_either_way(whole, bare), "");
  // An operand is at its place, and not another one of its size.
  const DumpFile first = op("first", "h.0/sub#0", {{{3, kRows}, {0, {}}}});
  const DumpFile second = op("second", "h.0/sub#0", {{{0, {}}, {4, kRows}}});
  EXPECT_EQ(parted_either_way(first, second), "");
  EXPECT_EQ(all_.size(), 1u);
}

TEST_F(CompareOperands, ThatAreNoTensorInBothRunsBelongTogether) {
  const DumpFile one = op("one", "wte/embedding#0", {{{3, kRows}, {0, {}}}});
  const DumpFile same = op("same", "wte/embedding#0", {{{3, kRows}, {0, {}}}});
  const DumpFile other = op("other", "wte/embedding#0", {{{3, kRows}, {2, kVector}}});
  const auto alone = [&] {
    return std::ranges::count_if(pairs_.entries[0].records,
                                 [](const RecordPair& r) { return !r.npu || !r.bench; });
  };
  EXPECT_EQ(parted(one, same), "");
  EXPECT_EQ(alone(), 0);
  EXPECT_EQ(parted(one, other), "");
  EXPECT_EQ(alone(), 2);
}

TEST_F(CompareOperands, OfASumStandInEitherOrder) {
  const DumpFile one = op("one", "h.0/add#0", {{{3, kRows}, {4, kRows}}});
  const DumpFile other = op("other", "h.0/add#0", {{{4, kRows}, {3, kRows}}});
  const DumpFile part = op("part", "h.0/add#0", {{{4, kRows}, {0, {}}}});
  EXPECT_EQ(parted_either_way(one, other), "");
  EXPECT_EQ(all_.size(), 3u);
  EXPECT_EQ(parted_either_way(one, part), "");
  EXPECT_EQ(all_.size(), 2u);
  const DumpFile wrong = op("wrong", "h.0/add#0", {{{4.4, kRows}, {3, kRows}}}, 5.3);
  EXPECT_TRUE(has(parted(wrong, one), "what h.0/add#0 takes (0) is off by"));
  const DumpFile sub = op("sub", "h.0/sub#0", {{{3, kRows}, {4, kRows}}});
  const DumpFile turned = op("turned", "h.0/sub#0", {{{4, kRows}, {3, kRows}}});
  EXPECT_NE(parted_either_way(sub, turned), "");
}

// Under a loss scale nothing says which of two gradients it is that a run has alone.
TEST_F(CompareOperands, OfASumOfGradientsAreComparedWhereBothHaveAll) {
  const std::string sum = "h.0/add.backward#0";
  const DumpFile part = op("part", sum, {{{3, kRows}, {0, {}}}}, 5, true);
  const DumpFile whole = op("whole", sum, {{{4, kRows}, {3, kRows}}}, 5, true);
  EXPECT_EQ(parted_either_way(part, whole), "");
  EXPECT_EQ(all_.size(), 1u);
}

// A norm of PyTorch has the shape before weight and bias, and begins with another place.
TEST_F(CompareOperands, OfAFunctionMayStandElsewhere) {
  const Json shape = Json::array({{{"type", "int"}, {"value", 8}}});
  const Json theirs = {tensor(kRows, 3), shape, tensor(kVector, 7), tensor(kVector, 2)};
  const DumpFile function_ = function("torch", "layer_norm", theirs);
  const DumpFile right =
      op("right", "h.0/layer_norm#0", {{{3, kRows}, {7, kVector}, {2, kVector}}});
  EXPECT_EQ(parted_either_way(right, function_), "");
  EXPECT_EQ(all_.size(), 4u);
  // Of two of a size where one is another: which is which is not known.
  const DumpFile unclear =
      op("unclear", "h.0/layer_norm#0", {{{3, kRows}, {7, kVector}, {4, kVector}}});
  EXPECT_EQ(parted_either_way(unclear, function_), "");
  EXPECT_EQ(all_.size(), 2u);
  const DumpFile missing = op("missing", "h.0/layer_norm#0", {{{3, kRows}, {0, {}}, {2, kVector}}});
  EXPECT_EQ(parted_either_way(missing, function_), "");
  const DumpFile wrong =
      op("wrong", "h.0/layer_norm#0", {{{3.3, kRows}, {7, kVector}, {2, kVector}}});
  EXPECT_TRUE(has(parted(wrong, function_), "what h.0/layer_norm#0 takes (0) is off by"));
}

// addmm takes the bias first, attention queries, keys and values in one array.
TEST_F(CompareOperands, OfAnotherSizeAreOthers) {
  const DumpFile addmm =
      function("addmm", "addmm", {tensor(kVector, 2), tensor(kRows, 3), tensor(kWeight, 7)});
  const DumpFile linear = op("linear", "h.0/linear#0", {{{3, kRows}, {7, kWeight}, {2, kVector}}});
  EXPECT_EQ(parted_either_way(linear, addmm), "");
  EXPECT_EQ(all_.size(), 4u);
  const DumpFile three = function("three", "scaled_dot_product_attention",
                                  {tensor(kRows, 3), tensor(kRows, 4), tensor(kRows, 6)});
  const DumpFile one = op("one", "h.0/scaled_dot_product_attention#0", {{{8, {4, 24}}}});
  EXPECT_EQ(parted_either_way(one, three), "");
  EXPECT_EQ(all_.size(), 1u);
}

// What an op takes in low types is off by their rounding, whether or not what gives it is seen.
TEST_F(CompareOperands, AreHeldToTheTypesOfTheCall) {
  const DumpFile whole = op("whole", "h.0/linear#0", {{{3, kRows}, {7, kWeight}}});
  Json json = Json::parse(read_file(folder_ / "whole.json", 1 << 20));
  Json& entry = json["data"]["Torch.linear.0.forward"];
  for (const char* list : {"input_args", "output"})
    for (Json& r : entry[list]) {
      r["dtype"] = "torch.bfloat16";
      r["Norm"] = r["Norm"].get<double>() * 1.002;
    }
  const DumpFile low = read("low", json);
  EXPECT_EQ(parted_either_way(low, whole), "");
  EXPECT_EQ(all_.size(), 3u);
}

}  // namespace
}  // namespace aloft::compare

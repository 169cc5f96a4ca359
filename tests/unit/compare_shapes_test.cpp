// Values that one run has once for all rows of a batch and the other for each: the same, where the
// batches are of one size.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "dump_records.h"
#include "observe/compare/difference.h"
#include "observe/compare/divergence.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

class CompareShapes : public ::testing::Test {
 protected:
  DumpFile dump(const std::string& name, const Json& data) {
    const Path file = folder_ / (name + ".json");
    TemporaryFolder::put(file, Json{{"task", "statistics"}, {"data", data}}.dump());
    return read_dump(file);
  }
  // The sentence of the first divergence; "" where there is none.
  std::string parted(const Json& npu, const Json& bench) {
    const DumpFile n = dump("npu", npu), b = dump("bench", bench);
    const Pairs pairs = pair_dumps(n, b, {});
    const auto all = compare_all(pairs, [](const RecordPair&) { return nullptr; });
    const auto d = first_divergence(all, n);
    return d ? d->sentence : "";
  }

  TemporaryFolder folder_;
};

// Tokens and positions, each looked up, of `rows` rows; of positions as `shape`, with elements as
// large as in rows of the norm 3.
Json model(int rows, std::vector<int> shape, double size = 1) {
  const auto table = [](std::vector<int> in, const Json& out) {
    Json taken = tensor(in, 1, "torch.int64");
    taken["Max"] = 7, taken["Min"] = 0, taken["Mean"] = nullptr, taken["Norm"] = nullptr;
    return forward(taken, out, {{"weight", tensor({8, 4}, 5)}});
  };
  double elements = 1;
  for (const int n : shape) elements *= n;
  Json positions = tensor(shape, 3 * size * std::sqrt(elements / 32));
  positions["Max"] = 2 * size, positions["Min"] = -2 * size;
  Json flows = tensor(shape, std::sqrt(elements));
  return {
      {"Module.wte.Embedding.forward.0", table({rows, 8}, tensor({rows, 8, 4}, 4))},
      {"Module.wpe.Embedding.forward.0", table({shape.begin(), std::prev(shape.end())}, positions)},
      {"Module.wpe.Embedding.backward.0",
       {{"input", Json::array({flows})}, {"output", Json::array()}}}};
}

TEST_F(CompareShapes, ARowForAllIsTheSameAsOneForEach) {
  for (const std::vector<int>& once : {std::vector<int>{8, 4}, std::vector<int>{1, 8, 4}}) {
    EXPECT_EQ(parted(model(3, {3, 8, 4}), model(3, once)), "");
    EXPECT_EQ(parted(model(3, once), model(3, {3, 8, 4})), "");
  }
}

TEST_F(CompareShapes, WhatIsInTheRowsIsHeldAgainstTheOne) {
  for (const bool is_first : {true, false}) {
    const Json each = model(3, {3, 8, 4}, 1.01), once = model(3, {8, 4});
    const std::string said = is_first ? parted(each, once) : parted(once, each);
    EXPECT_NE(said.find("what wpe gives (0) is off by 0.0"), std::string::npos) << said;
    EXPECT_NE(said.find("the smaller one taken once for each row"), std::string::npos) << said;
  }
}

TEST_F(CompareShapes, ABatchOfAnotherSizeIsAnotherBatch) {
  for (const std::vector<int>& shape : {std::vector<int>{8, 4}, std::vector<int>{1, 8, 4}}) {
    const std::string said = parted(model(3, {3, 8, 4}), model(1, shape));
    EXPECT_NE(said.find("data: what wte takes (0) has the shape"), std::string::npos) << said;
  }
  // Nothing else tells how large the batch is.
  Json each = model(3, {3, 8, 4}), once = model(3, {1, 8, 4});
  for (Json* const one : {&each, &once}) one->erase("Module.wte.Embedding.forward.0");
  EXPECT_NE(parted(each, once).find("has the shape"), std::string::npos);
}

TEST_F(CompareShapes, OtherAxesAreAnotherShape) {
  const std::string said = parted(model(3, {3, 8, 4}), model(3, {3, 2, 4}));
  EXPECT_NE(said.find("wpe takes (0) has the shape"), std::string::npos) << said;
}

// A step whose module, and function, give `out`.
Json giving(const Json& out) {
  Json function = forward(tensor({2, 3}, 1), out);
  function.erase("parameters");
  return {{"Module.a.A.forward.0", forward(tensor({2, 3}, 1), out)},
          {"Torch.round.0.forward", std::move(function)}};
}

TEST_F(CompareShapes, AResultOfAnotherClassOfTypesIsNoneOfTheFirst) {
  for (const char* const type : {"torch.int64", "torch.bool", "torch.complex64"})
    for (const bool is_first : {true, false}) {
      const Json floats = giving(tensor({2, 3}, 4)), others = giving(tensor({2, 3}, 4, type));
      const std::string said = is_first ? parted(others, floats) : parted(floats, others);
      EXPECT_NE(said.find("what a gives (0) has the type "), std::string::npos) << said;
      EXPECT_NE(said.find(type), std::string::npos) << said;
      EXPECT_EQ(parted(others, others), "");
    }
  // Of a function alone, and in another size.
  Json floats = giving(tensor({2, 3}, 4)), whole = giving(tensor({6, 1, 1}, 4, "torch.int32"));
  for (Json* const one : {&floats, &whole}) one->erase("Module.a.A.forward.0");
  EXPECT_NE(parted(floats, whole).find("has the type torch.float32 against torch.int32"),
            std::string::npos);
  // Of low types beside others it is a matter of rounding.
  EXPECT_EQ(parted(giving(tensor({2, 3}, 4, "torch.bfloat16")), giving(tensor({2, 3}, 4))), "");
}

// Beside weights of f32, whose smallest numbers are much larger.
TEST_F(CompareShapes, SmallNumbersOfF64HaveAllTheirDigits) {
  const auto small = [](double size) {
    Json out = tensor({2, 3}, size, "torch.float64");
    return Json{{"Module.a.A.forward.0", forward(tensor({2, 3}, 1, "torch.float64"), out,
                                                 {{"weight", tensor({3, 3}, 1)}})}};
  };
  const std::string said = parted(small(1.5e-200), small(1e-200));
  EXPECT_NE(said.find("what a gives (0) is off by 0.5 in Norm"), std::string::npos) << said;
  EXPECT_EQ(parted(small(1e-200), small(1e-200 * (1 + 1e-15))), "");
}

// What a call takes may be of either: a mask.
TEST_F(CompareShapes, AMaskMayBeOfFloatsOrNot) {
  Json floats = giving(tensor({2, 3}, 4)), bools = floats;
  floats["Module.a.A.forward.0"]["input_args"].push_back(tensor({3, 3}, 1));
  bools["Module.a.A.forward.0"]["input_args"].push_back(tensor({3, 3}, 1, "torch.bool"));
  EXPECT_EQ(parted(floats, bools), "");
}

}  // namespace
}  // namespace aloft::compare

// What stands in a dump in place of figures and shapes, and steps of which there is no dump.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "observe/compare/elements.h"
#include "observe/compare/steps.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

class CompareUnreadable : public ::testing::Test {
 protected:
  StepResult compare(const Json& npu, const Json& bench) {
    for (const auto& [name, out] : {std::pair{"npu.json", npu}, {"bench.json", bench}})
      TemporaryFolder::put(
          folder_ / name,
          Json{{"data", {{"Module.a.A.forward.0", forward(tensor({64}, 1), out)}}}}.dump());
    return compare_runs({folder_ / "npu.json", folder_ / "bench.json", folder_ / "out", {}}).at(0);
  }
  TemporaryFolder folder_;
};

TEST_F(CompareUnreadable, AFigureThatIsAWordIsNoAgreement) {
  Json out = tensor({64}, 1);
  out["Norm"] = "w";
  const StepResult both = compare(out, out);
  EXPECT_EQ(both.unreadable, 2u);
  EXPECT_TRUE(both.sentence.starts_with(
      "of 2 tensors the figures cannot be read (Module.a.A.forward.0.output.0: Norm is \"w\", and "
      "others), beside that: no divergence"))
      << both.sentence;
  const Json said = Json::parse(read_file(folder_ / "out/compare_result.json"));
  EXPECT_EQ(said["unreadable"][1]["why"], "Norm is \"w\"");
  const std::string table = read_file(folder_ / "out/compare_result.csv");
  EXPECT_NE(table.find("It cannot be read: Norm is"), std::string::npos) << table;
  out["Norm"] = Json::array();
  EXPECT_NE(compare(out, tensor({64}, 1)).sentence.find("Norm is no number"), std::string::npos);
  // Words for numbers, and that there is none.
  for (const Json& word : {Json("inf"), Json("nan"), Json("N/A"), Json(nullptr), Json(true)}) {
    out["Norm"] = word;
    EXPECT_EQ(compare(out, out).unreadable, 0u) << word;
  }
}

TEST_F(CompareUnreadable, ATensorWithoutAShapeIsSaid) {
  Json bare = tensor({64}, 1);
  bare.erase("shape");
  for (const StepResult& r : {compare(bare, tensor({64}, 1)), compare(tensor({64}, 1), bare)}) {
    EXPECT_EQ(r.unreadable, 1u);
    EXPECT_NE(r.sentence.find("Module.a.A.forward.0.output.0: it has no shape"), std::string::npos)
        << r.sentence;
  }
}

TEST_F(CompareUnreadable, AShapeThatNoTensorHasIsNoShape) {
  const auto with = [](const Json& shape) {
    Json out = tensor({64}, 1);
    out["shape"] = shape;
    return out;
  };
  for (const Json& shape :
       {Json::array({std::int64_t{1} << 62}), Json::array({-64}), Json::array({1 << 30, 1 << 30}),
        Json::array({6.5}), Json::array({"64"}), Json("64")}) {
    const StepResult r = compare(with(shape), with(shape));
    EXPECT_EQ(r.unreadable, 2u) << shape;
    EXPECT_TRUE(r.sentence.starts_with("of 2 tensors the figures cannot be read")) << r.sentence;
    EXPECT_NE(r.sentence.find("its shape is ["), std::string::npos) << r.sentence;
  }
  EXPECT_NE(compare(with(Json::array({-64})), tensor({64}, 1)).sentence.find("its shape is [-64]"),
            std::string::npos);
  EXPECT_EQ(compare(with(Json::array({64, 0})), with(Json::array({64, 0}))).unreadable, 0u);
}

TEST_F(CompareUnreadable, WhatIsOffByNoNumberIsShown) {
  const auto seen = [](std::vector<double> n, std::vector<double> b) {
    return figures_of({std::move(n), {2, 4}, "torch.float32"},
                      {std::move(b), {2, 4}, "torch.float32"})
        .seen;
  };
  EXPECT_EQ(seen({1, 2, 3, -kInf, 5, 6, 7, 8}, {1, 2, 3, kInf, 5, 6, 7, 8}),
            "-inf against inf at [0, 3]");
  EXPECT_EQ(seen({1, 2, 3, 4, kInf, kInf, 7, kInf}, {1, 2, 3, 4, 5, 6, 7, 8}),
            "inf against 5 at [1, 0], and 2 more such");
  EXPECT_EQ(seen({1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 9}), "");
  Json out = tensor({64}, 1);
  out["Max"] = "inf";
  const std::string said = compare(out, tensor({64}, 1)).sentence;
  EXPECT_NE(said.find("what a gives (0) has the Max inf against 0.5"), std::string::npos) << said;
  EXPECT_EQ(said.find("any number"), std::string::npos) << said;
}

// Beside 0 nothing is small: msprobe divides by a number of its own there.
TEST_F(CompareUnreadable, WhatIsBesideZeroIsInfinitelyMuch) {
  const auto figures = [](double n) {
    return figures_of({{n, 1}, {2}, "torch.float32"}, {{0, 1}, {2}, "torch.float32"});
  };
  EXPECT_EQ(figures(1e-9).max_relative, kInf);
  EXPECT_EQ(figures(1e-9).thousandth, 0.5);
  EXPECT_EQ(figures(1e-12).five_thousandths, 0.5);  // which msprobe counts as the same
  EXPECT_EQ(figures(0).max_relative, 0);
  EXPECT_EQ(figures(0).thousandth, 1);
}

TEST_F(CompareUnreadable, AStepWithoutADumpIsSaid) {
  const Json data = {{"Module.a.A.forward.0", forward(tensor({64}, 1), tensor({64}, 1))}};
  const auto put = [&](const char* run, const char* step) {
    make_folder(folder_ / run / step / "rank");
    TemporaryFolder::put(folder_ / run / step / "rank/dump.json", Json{{"data", data}}.dump());
  };
  put("npu", "step0"), put("npu", "step1"), put("bench", "step0");
  make_folder(folder_ / "bench/step1/rank");
  std::string alone;
  const auto compared = [&] {
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}}, &alone);
  };
  const auto one = compared();
  const std::string npu = (folder_ / "npu").string(), bench = (folder_ / "bench").string();
  EXPECT_EQ(alone, "step1 of " + npu + "; step1 of " + bench + " has no dump.json");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_TRUE(one[0].sentence.ends_with("; not compared: " + alone)) << one[0].sentence;
  put("npu", "step2"), put("bench", "step2");
  const auto two = compared();
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(summary_of(two, alone), "no divergence in 2 steps; not compared: " + alone);
  const Json said = Json::parse(read_file(folder_ / "out/compare_result.json"));
  EXPECT_EQ(said["sentence"], summary_of(two, alone));
  put("bench", "step1");
  compared();
  EXPECT_EQ(alone, "");
}

}  // namespace
}  // namespace aloft::compare

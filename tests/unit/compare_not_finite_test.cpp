// What hides the other elements of a tensor from its statistics: NaN, infinities, masks.
#include <gtest/gtest.h>

#include <cmath>

#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "observe/compare/difference.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

class CompareNotFinite : public ::testing::Test {
 protected:
  // The sentence of two runs in which a call gives this.
  std::string sentence(const Json& npu, const Json& bench) {
    for (const auto& [name, out] : {std::pair{"npu.json", npu}, {"bench.json", bench}})
      TemporaryFolder::put(
          folder_ / name,
          Json{{"data", {{"Module.a.A.forward.0", forward(tensor({64}, 1), out)}}}}.dump());
    return compare_runs({folder_ / "npu.json", folder_ / "bench.json", folder_ / "out", {}})
        .at(0)
        .sentence;
  }
  TemporaryFolder folder_;
};

Json with(const char* figure, const Json& all_figures, const char* count, int number) {
  Json out = tensor({64}, 1);
  for (const char* key : {"Max", "Min", "Mean", "Norm"}) out[key] = all_figures;
  if (figure) out[figure] = 0.5;
  for (const char* key : {"nan", "inf", "-inf"})
    out[key] = key == std::string_view(count) ? number : 0;
  return out;
}

TEST_F(CompareNotFinite, AreCountedWhereBothDumpsCount) {
  const auto nan = [](int count) { return with(nullptr, "nan", "nan", count); };
  EXPECT_NE(sentence(nan(1), nan(64))
                .find("is off by 0.98 in the number of elements that are nan (1 against 64)"),
            std::string::npos)
      << sentence(nan(1), nan(64));
  EXPECT_TRUE(sentence(nan(3), nan(3)).starts_with("no divergence"));
  const auto inf = [](int count) { return with("Min", "inf", "inf", count); };
  EXPECT_NE(sentence(inf(1), inf(2)).find("that are inf (1 against 2)"), std::string::npos);
  const auto minus_inf = [](int count) { return with("Max", "-inf", "-inf", count); };
  EXPECT_NE(sentence(minus_inf(1), minus_inf(2)).find("that are -inf (1 against 2)"),
            std::string::npos);
  // Which elements a low type has no room for, rounding decides, and not of how many.
  const auto low = [&](int count) {
    Json out = inf(count);
    out["dtype"] = "torch.float16";
    return out;
  };
  EXPECT_TRUE(sentence(low(9), low(10)).starts_with("no divergence")) << sentence(low(9), low(10));
  EXPECT_TRUE(sentence(low(9), low(30)).starts_with("first divergence"));
  // A dump of msprobe's has no counts.
  Json without = nan(64);
  without.erase("nan");
  EXPECT_TRUE(sentence(nan(1), without).starts_with("no divergence"));
}

TEST_F(CompareNotFinite, ItIsSaidWhereNaNHidesTheRest) {
  const Json nan = with(nullptr, "nan", "nan", 1);
  EXPECT_NE(sentence(nan, nan).find("; of 1 that hold NaN in both runs statistics see no other"),
            std::string::npos)
      << sentence(nan, nan);
  EXPECT_EQ(sentence(tensor({64}, 1), tensor({64}, 1)).find("NaN"), std::string::npos);
}

// A value is no mask of attention because it is large: a mask lies where its type ends.
TEST_F(CompareNotFinite, MasksLieAtTheEndOfTheirType) {
  const auto values = [](double min, double norm) {
    Json out = tensor({64}, norm, "torch.float16");
    out["Min"] = min, out["Max"] = 900;
    return out;
  };
  EXPECT_TRUE(sentence(values(-40000, 41114), values(-60000, 60050)).starts_with("first"));
  EXPECT_TRUE(sentence(values(-60000, 61000), values(-60000, 90000)).starts_with("first"));
  // Scores are added to it, and the norm overflows in one of the runs.
  EXPECT_TRUE(
      sentence(values(-65504, 370000), values(-65472, 370000)).starts_with("no divergence"));
  Json overflown = values(-65504, 0);
  overflown["Norm"] = "inf";
  EXPECT_TRUE(sentence(overflown, values(-65504, 370000)).starts_with("no divergence"));
  // Or the mask itself does, in all its elements.
  overflown["Min"] = "-inf", overflown["Mean"] = "-inf", overflown["-inf"] = 28;
  Json end = values(-65504, 370000);
  end["-inf"] = 0;
  EXPECT_TRUE(sentence(overflown, end).starts_with("no divergence")) << sentence(overflown, end);
  Json others = overflown;
  others["-inf"] = 36;
  EXPECT_TRUE(sentence(overflown, others).starts_with("first divergence"));
}

// msprobe takes the norm of float16 in float16.
TEST_F(CompareNotFinite, ANormThatOverflowedInItsTypeSaysNoMore) {
  const auto out = [](const Json& norm, bool is_exact, double mean = 0) {
    Json t = tensor({1024, 1024}, 1, "torch.float16");
    t["Max"] = 400, t["Min"] = -400, t["Mean"] = mean, t["Norm"] = norm;
    if (!is_exact) t.erase("underflowed");
    return t;
  };
  const auto is_same = [&](const Json& npu, const Json& bench) {
    return sentence(npu, bench).starts_with("no divergence") &&
           sentence(bench, npu).starts_with("no divergence");
  };
  EXPECT_TRUE(is_same(out("inf", false), out(1e5, true)));
  EXPECT_TRUE(is_same(out("inf", false, 1e-4), out(1e5, true, 1.2e-4)));  // beside 100, nothing
  EXPECT_FALSE(is_same(out("inf", false), out(6e4, true)));               // which had room
  EXPECT_FALSE(is_same(out("inf", true), out(1e5, true)));                // made in double
  Json infinite = out("inf", false);
  infinite["Max"] = "inf";
  EXPECT_FALSE(is_same(infinite, out(1e5, true)));
  EXPECT_FALSE(is_same(out("inf", false, 60), out(1e5, true, 30)));
}

}  // namespace
}  // namespace aloft::compare

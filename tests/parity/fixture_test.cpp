// The measures that results in low types are judged by, on made-up tensors: roundings pass, and one
// small wrong element or row does not.
#include "parity/fixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "scalar/philox.h"

namespace aloft::parity {
namespace {

HostArray array(std::vector<std::int64_t> shape, const std::vector<double>& values) {
  HostArray a = HostArray::zeros(DType::F64, std::move(shape));
  a.values.assign(values.begin(), values.end());
  return a;
}

TEST(Measures, AreThoseOfTheJudges) {
  const HostArray want = array({2, 2}, {3, -1, 1, 1});  // root mean square: sqrt(3)
  const HostArray got = array({2, 2}, {3, -1, 1, 2});
  EXPECT_DOUBLE_EQ(root_mean_square(want), std::sqrt(3));
  EXPECT_DOUBLE_EQ(error_of(got, want), 1.0 / 3);
  EXPECT_DOUBLE_EQ(norm_error(got, want), 1 / std::sqrt(12));
  EXPECT_DOUBLE_EQ(element_error(got, want), 1 / (1 + 1 / std::sqrt(3)));
  EXPECT_DOUBLE_EQ(element_error(array({4}, got.doubles()), array({4}, want.doubles())),
                   1 / (1 + std::sqrt(3)));
  EXPECT_EQ(norm_error(want, want), 0);
  EXPECT_EQ(element_error(want, want), 0);
  const HostArray nothing = array({2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(norm_error(nothing, nothing), 0);
  EXPECT_EQ(element_error(nothing, nothing), 0);
  EXPECT_GT(norm_error(want, nothing), 1);
  EXPECT_GE(element_error(want, nothing), 3);
}

TEST(Measures, AreInfiniteWhereNothingCanBeCompared) {
  const HostArray want = array({2, 2}, {3, -1, 1, 1});
  for (const double x : {std::nan(""), std::numeric_limits<double>::infinity()})
    for (const HostArray& got : {array({2, 2}, {3, -1, x, 1}), array({4}, {3, -1, 1, 1})})
      for (const auto measure : {error_of, norm_error, element_error})
        EXPECT_TRUE(std::isinf(measure(got, want)) || std::isnan(measure(got, want)));
}

// A gradient of 64 rows whose last one is a hundred times larger than the others, rounded to bf16
// some twenty times on its way, as PyTorch's was.
class OneLargeRow : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 64, kColumns = 32;

  OneLargeRow() : want_(HostArray::zeros(DType::F64, {kRows, kColumns})), got_(want_) {
    HostArray theirs = want_;
    for (std::int64_t i = 0; i < want_.numel(); ++i) {
      const double size = i / kColumns == kRows - 1 ? 100 : 1;
      want_[i] = size * scalar::normal(scalar::RandomKey{1, 0, 0, 0}, i);
      got_[i] = want_[i] + size * 0.01 * scalar::normal(scalar::RandomKey{2, 0, 0, 0}, i);
      theirs[i] = want_[i] + size * 0.01 * scalar::normal(scalar::RandomKey{3, 0, 0, 0}, i);
    }
    errors_ = {{"torch_bf16_norm_error", {{"g", norm_error(theirs, want_)}}},
               {"torch_bf16_element_error", {{"g", element_error(theirs, want_)}}}};
  }
  std::string problem() const { return LowJudge(errors_, DType::BF16).problem("g", got_, want_); }

  HostArray want_, got_;
  Json errors_;
};

TEST_F(OneLargeRow, RoundingsPass) { EXPECT_EQ(problem(), ""); }

TEST_F(OneLargeRow, ADoubledElementOfASmallRowIsNoticed) {
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < 10 * kColumns; ++i)
    if (std::abs(want_[i]) > std::abs(want_[largest])) largest = i;
  got_[largest] = 2 * got_[largest];
  EXPECT_LT(error_of(got_, want_), 0.02) << "the largest element hides it";
  EXPECT_EQ(problem().find("an element is off by 0."), 0u) << problem();
}

TEST_F(OneLargeRow, ASmallRowOfZerosIsNoticed) {
  for (std::int64_t i = 5 * kColumns; i < 6 * kColumns; ++i) got_[i] = 0;
  EXPECT_LT(error_of(got_, want_), 0.02) << "the largest element hides it";
  EXPECT_NE(problem(), "");
}

TEST_F(OneLargeRow, SomethingOffEverywhereIsNoticedByTheNorm) {
  for (HostNumber& x : got_.values) x = x * 1.03;
  EXPECT_EQ(problem().find("the norm is off by 0.03"), 0u) << problem();
}

TEST_F(OneLargeRow, TheCapOfTheNormHolds) {
  const LowJudge judge(errors_, DType::BF16);
  EXPECT_NE(judge.problem("g", got_, want_, 0.001), "");
  EXPECT_EQ(judge.norm_problem("g", got_, want_, 0), "");
}

// Nor does it allow a wrong gradient that PyTorch's own runs are nearly as far off as one.
TEST_F(OneLargeRow, HoweverFarOffPyTorchIsWrongGradientsAreNoticed) {
  errors_["torch_bf16_norm_error"]["g"] = 0.9;
  errors_["torch_bf16_element_error"]["g"] = 100;
  const LowJudge judge(errors_, DType::BF16);
  EXPECT_EQ(judge.norm_problem("g", got_, want_, 1.8), "");
  for (const auto& [wrong, g] : wrong_gradients(want_)) {
    EXPECT_NE(judge.norm_problem("g", g, want_, 1.8), "") << wrong;
    EXPECT_NE(judge.problem("g", g, want_), "") << wrong;
  }
}

TEST(WrongGradients, AreAsLongAsTheRightOneOrAsTheirNamesSay) {
  const HostArray right = array({3}, {3, -1, 2});
  std::map<std::string, HostArray> wrong;
  for (auto& [name, g] : wrong_gradients(right)) wrong.emplace(name, g);
  ASSERT_EQ(wrong.size(), 4u);
  EXPECT_DOUBLE_EQ(norm_error(wrong.at("zeros"), right), 1);
  EXPECT_DOUBLE_EQ(norm_error(wrong.at("doubled"), right), 1);
  EXPECT_DOUBLE_EQ(norm_error(wrong.at("of the other sign"), right), 2);
  EXPECT_NEAR(norm_error(wrong.at("unrelated numbers"), right), std::sqrt(2), 1e-12);
  EXPECT_NEAR(root_mean_square(wrong.at("unrelated numbers")), root_mean_square(right), 1e-12);
}

}  // namespace
}  // namespace aloft::parity

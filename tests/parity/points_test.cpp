// Operators where their formulas break (zeros of both signs, infinities, NaN, subnormal and huge
// numbers, ties, rows of equal huge logits): values and gradients are PyTorch's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "frontend/eager.h"
#include "ops/batch_norm.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/group_norm.h"
#include "ops/layer_norm.h"
#include "ops/reduce.h"
#include "ops/transpose.h"
#include "ops/var.h"
#include "parity/case_runs.h"
#include "types/tolerance.h"

namespace aloft::parity {
namespace {

const Fixture& points() {
  static const Fixture fixture("points");
  return fixture;
}

// Largest finite magnitude in the row, along the last axis, of element i.
double largest_in_row(const HostArray& a, std::int64_t i) {
  const std::int64_t n = a.shape.empty() ? 1 : a.shape.back();
  double largest = 0;
  for (std::int64_t j = i / n * n; j < i / n * n + n; ++j)
    if (std::isfinite(a[j])) largest = std::max(largest, std::abs(a[j]));
  return largest;
}

// Results in double are exact beside the fixture's, which are rounded to f32. Below the smallest
// normal number a result may be 0: the fast exponentials end there.
double allowed(const Case& c, const HostArray& want, std::int64_t i, DType type) {
  const Json& terms = c.info.at("terms");
  const double added = terms.is_string() ? largest_in_row(want, i) : terms.get<double>();
  const Tolerance t = tolerance_of(type, c.info.at("length"));
  const double rounded = 1.01 * unit_roundoff(DType::F32);
  const double terms_error =
      4 * unit_roundoff(type == DType::F64 ? DType::F64 : DType::F32) * added;
  return (t.relative + rounded) * std::abs(want[i]) + terms_error + t.absolute * added +
         static_cast<double>(std::numeric_limits<float>::min());
}

bool is_near(double got, double want, double limit) {
  if (std::isnan(want)) return std::isnan(got);
  return got == want || std::abs(got - want) <= limit;
}

std::string place(const Case& c, std::int64_t i) {
  std::string text = "at " + std::to_string(i) + ":";
  for (const auto& [name, a] : c.arrays)
    if (name.starts_with("in.") && i < a.numel())
      text += " " + name + "=" + ::testing::PrintToString(a[i]);
  return text;
}

void expect_near(const Case& c, Arrays got, DType type) {
  for (const auto& [name, want] : c.arrays) {
    if (!name.starts_with("out.") && !name.starts_with("grad.")) continue;
    ASSERT_TRUE(got.contains(name)) << name;
    HostArray& have = got.at(name);
    ASSERT_EQ(have.shape, want.shape) << name;
    for (std::int64_t i = 0; i < want.numel(); ++i) {
      const auto have_f32 = static_cast<double>(static_cast<float>(have[i]));
      EXPECT_TRUE(is_near(have_f32, want[i], allowed(c, want, i, type)))
          << name << " is " << have[i] << ", PyTorch's " << want[i] << " " << place(c, i);
    }
  }
}

DType computed_in(const Case& c) {
  return *parse_dtype(c.info.at("attrs").value("compute", std::string("f32")));
}

class Points : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { use_device(cpu_device()); }
  Case case_{points(), points().cases().at(GetParam())};
};

TEST_P(Points, MeaningIsPyTorchs) { expect_near(case_, run_in_double(case_), DType::F64); }

TEST_P(Points, CompiledForTheProcessor) {
  expect_near(case_, run_compiled(case_), computed_in(case_));
}

TEST_P(Points, OpByOp) { expect_near(case_, run_eagerly(case_), computed_in(case_)); }

INSTANTIATE_TEST_SUITE_P(PyTorch, Points,
                         ::testing::Range(0, static_cast<int>(points().cases().size())),
                         [](const auto& info) {
                           return test_name(points().cases().at(info.param));
                         });

// Far from 0 the mean is rounded coarsely: of equal numbers nothing may be left of that.
TEST(FarFromZero, EqualNumbersHaveNoDistances) {
  use_device(cpu_device());
  for (const float value : {1e6f + 0.3f, 33333.7f, -1000.1f, 1e30f}) {
    constexpr int kLength = 33;
    const Tensor x = from_floats(std::vector<float>(2 * kLength, value), {2, 1, kLength});
    const Tensor one = from_floats({1}, {1}), zero = from_floats({0}, {1});
    const Tensor stay = from_floats({0}, {1}), rate = from_floats({1}, {1});
    for (const Tensor& y :
         {layer_norm(x, Tensor(), Tensor()), group_norm(x, 1, one, zero),
          batch_norm(x, one, zero, stay, rate, {.training = true}).y, var(x, {2}, true)})
      for (const double v : y.to_vector()) ASSERT_EQ(v, 0) << value;
  }
}

// Sums that leave f32's range are made in double.
TEST(FarFromZero, EqualHugeNumbersHaveAMean) {
  use_device(cpu_device());
  constexpr int kLength = 768;
  const Tensor one = from_floats({1}, {1}), zero = from_floats({0}, {1});
  const Tensor stay = from_floats({0}, {1}), rate = from_floats({1}, {1});
  for (const float value : {1e37f, -3e38f})
    for (const DType type : {DType::F32, DType::BF16}) {
      const std::vector<float> values(2 * kLength, value);
      const Tensor x = cast(from_floats(values, {2, 1, kLength}), type);
      for (const Tensor& y : {layer_norm(x, Tensor(), Tensor()), group_norm(x, 1, one, zero),
                              batch_norm(x, one, zero, stay, rate, {.training = true}).y})
        for (const double v : y.to_vector()) ASSERT_EQ(v, 0) << value << " " << name_of(type);
    }
}

// As PyTorch has it: never negative, and of nothing at all no number.
TEST(Variances, OfNoMoreValuesThanTheirCorrection) {
  const Tensor x = from_floats({1, 2, 3, 7}, {2, 2});
  const std::vector<double> infinite(2, std::numeric_limits<double>::infinity());
  EXPECT_EQ(var(x, {1}, false, 3).to_vector(), infinite);
  EXPECT_EQ(var(x, {1}, false, 2).to_vector(), infinite);
  for (const double v : var(from_floats({}, {3, 0}), {1}).to_vector()) EXPECT_TRUE(std::isnan(v));
  EXPECT_TRUE(std::isnan(var(full({1}, 4.0)).item()));
}

TEST(Products, AreThoseOfDoubleAlongEveryAxis) {
  use_device(cpu_device());
  const std::vector<float> factors = {1e30f, 1e30f, 1e-30f, 1e-30f, 2, 2, 2, 2};
  const std::vector<double> want = {1, 16};
  const std::vector<double> rows = prod(from_floats(factors, {2, 4}), {1}).to_vector();
  const std::vector<double> columns =
      prod(transpose(from_floats(factors, {2, 4}), {1, 0}), {0}).to_vector();
  EXPECT_EQ(columns, rows);
  for (std::size_t i = 0; i < want.size(); ++i)  // the factors are rounded, and the product
    EXPECT_NEAR(rows[i], want[i], 5 * unit_roundoff(DType::F32) * want[i]);
}

}  // namespace
}  // namespace aloft::parity

// Statistics of runs of floats of every type and size against their meaning in double: counts and
// ranges as they are, sums within the bounds of backends/cpu/update/piece_statistics.h, also where
// squares leave the range of f32; and the same bits on every instruction set.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "backends/cpu/update/differences.h"
#include "backends/cpu/update/piece_statistics.h"
#include "ops/host_statistics.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

using cpu::PieceStatistics;

// Element i of a run, from a normal number.
using Element = std::function<double(std::uint64_t i, double normal)>;

double rare(std::uint64_t i, double usual, double other) { return i % 97 == 50 ? other : usual; }

const std::map<std::string, Element>& runs() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  static const std::map<std::string, Element> all = {
      {"of both signs", [](auto, double x) { return x; }},
      {"above 0", [](auto, double x) { return std::abs(x) + 0.5; }},
      {"below 0", [](auto, double x) { return -std::abs(x) - 0.5; }},
      {"far from 0", [](auto, double x) { return 1000 + x; }},
      {"of many magnitudes",
       [](auto i, double x) { return std::ldexp(x, static_cast<int>(i * 7 % 24) - 12); }},
      {"zeros", [](auto i, double) { return i % 2 ? -0.0 : 0.0; }},
      {"zeros among others", [](auto i, double x) { return i % 3 ? 0.0 : x; }},
      {"one number among zeros", [](auto i, double) { return i == 40 ? -3.0 : 0.0; }},
      {"with tiny ones", [](auto i, double x) { return i % 2 ? x : 1e-25 * x; }},
      {"tiny", [](auto, double x) { return 1e-22 * x; }},
      {"tiny, then not", [](auto i, double x) { return i < 2048 ? 1e-30 * x : x; }},
      {"subnormal", [](auto, double x) { return 1e-40 * x; }},
      {"subnormal in f16", [](auto, double x) { return 1e-6 * x; }},
      {"huge", [](auto, double x) { return 1e25 * x; }},
      {"a huge one", [](auto i, double x) { return rare(i, x, -1e30); }},
      {"the largest",
       [](auto i, double x) {
         const double of_a_type[] = {65504, -0x1.fep127, -0x1.fffffep127};
         return rare(i, x, of_a_type[i / 97 % 3]);
       }},
      {"inf", [](auto i, double x) { return rare(i, x, kInf); }},
      {"-inf", [](auto i, double x) { return rare(i, x, -kInf); }},
      {"inf of both signs", [](auto i, double x) { return rare(i, x, i % 2 ? kInf : -kInf); }},
      {"NaN", [](auto i, double x) { return rare(i, x, i % 2 ? kNan : -kNan); }},
  };
  return all;
}

// Ends of rows, groups and blocks, and what is left behind them.
constexpr std::int64_t kSizes[] = {0, 1, 31, 32, 33, 255, 256, 257, 800, 2048, 2049, 4100, 9999};

HostArray run_of(const Element& element, DType type, std::int64_t n) {
  HostArray a = HostArray::zeros(type, {n});
  for (std::int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<std::uint64_t>(i);
    a[i] = element(k, scalar::normal({17, 4}, k));
  }
  round_to_dtype(a);
  return a;
}

PieceStatistics statistics_of(const HostArray& a) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(a.numel()) * size_of(a.dtype) + 1);
  store_bytes(a, bytes.data());
  cpu::StatisticsInLanes lanes;
  cpu::add_statistics(a.dtype, bytes.data(), a.numel(), lanes);
  return cpu::together(lanes);
}

// Of f64 alone: its squares may be no doubles.
TEST(Statistics, NormsAreOfNumbersWhoseSquaresAreNone) {
  for (const double size : {1e200, 1.2e308, 1e-200, 4e-320, 1.0}) {
    HostArray a = HostArray::zeros(DType::F64, {4});
    a[0] = size, a[2] = -size;
    EXPECT_NEAR(statistics_in_double(a).norm / size, std::sqrt(2.0), size < 1e-300 ? 1e-3 : 1e-15)
        << size;
  }
  HostArray most = HostArray::zeros(DType::F64, {3});  // whose sum is none
  most[0] = 1e308, most[1] = 0.5e308, most[2] = 1.5e308;
  EXPECT_DOUBLE_EQ(statistics_in_double(most).mean, 1e308);
  HostArray a = HostArray::zeros(DType::F64, {2});
  a[0] = 1e200, a[1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(statistics_in_double(a).norm, a[1]);
}

// Equal, or both NaN.
void expect_same(double got, double want, const char* what) {
  if (std::isnan(want))
    EXPECT_TRUE(std::isnan(got)) << what;
  else
    EXPECT_EQ(got, want) << what;
}

void expect_near(double got, double want, double allowed, const char* what) {
  if (std::isfinite(want))
    EXPECT_LE(std::abs(got - want), allowed) << what << ": " << got << ", not " << want;
  else
    expect_same(got, want, what);
}

// `exact`: how far sums may be off, of their magnitudes.
void expect_meaning(const HostArray& a, const PieceStatistics& s, double exact) {
  const TensorStatistics got = cpu::numbers_of(s, a.numel()), want = statistics_in_double(a);
  expect_same(got.max, want.max, "max");
  expect_same(got.min, want.min, "min");
  EXPECT_EQ(got.elements, want.elements);
  EXPECT_EQ(got.nan, want.nan);
  EXPECT_EQ(got.positive_inf, want.positive_inf);
  EXPECT_EQ(got.negative_inf, want.negative_inf);
  EXPECT_EQ(got.zeros, want.zeros);
  EXPECT_EQ(got.underflowed, want.underflowed);
  EXPECT_EQ(got.saturated, want.saturated);
  double magnitudes = 0;
  for (const double x : a.values) magnitudes += std::abs(x);
  expect_near(got.mean, want.mean, exact * magnitudes / want.elements, "mean");
  expect_near(got.norm, want.norm, exact / 2 * want.norm, "norm");
}

double exactness_of(DType t) { return is_low(t) ? 9.001 * 0x1p-24 : 1e-13; }

class StatisticsOfRuns : public testing::TestWithParam<DType> {};

TEST_P(StatisticsOfRuns, AreTheirMeaning) {
  for (const auto& [name, element] : runs())
    for (const std::int64_t n : kSizes) {
      SCOPED_TRACE(name + ", " + std::to_string(n));
      const HostArray a = run_of(element, GetParam(), n);
      expect_meaning(a, statistics_of(a), exactness_of(GetParam()));
    }
}

TEST(StatisticsOfRun, HasAMeanBetweenItsExtremes) {
  PieceStatistics s;
  s.extend(0.1f, 0.1f);
  s.sum = 3 * double(0.1f) * (1 + 1e-7);
  EXPECT_EQ(cpu::numbers_of(s, 3).mean, double(0.1f));
}

// In two calls, the first of whole rows.
TEST_P(StatisticsOfRuns, AreAddedUp) {
  const HostArray a = run_of(runs().at("of both signs"), GetParam(), 3000);
  std::vector<std::byte> bytes(3000 * size_of(a.dtype));
  store_bytes(a, bytes.data());
  cpu::StatisticsInLanes lanes;
  cpu::add_statistics(a.dtype, bytes.data(), 1024, lanes);
  cpu::add_statistics(a.dtype, bytes.data() + 1024 * size_of(a.dtype), 1976, lanes);
  expect_meaning(a, cpu::together(lanes), exactness_of(GetParam()));
}

std::vector<double> numbers_in(const PieceStatistics& s, std::int64_t n) {
  std::vector<double> all(TensorStatistics::kNumbers);
  cpu::numbers_of(s, n).put(all.data());
  all.insert(all.end(), {s.sum, s.squares});
  return all;
}

// Runs `body` on each instruction set that there is code for and that this processor has.
template <class Body>
void on_each_target(const Body& body) {
  const std::int64_t here = hwy::SupportedTargets();
  for (const std::int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SCALAR}) {
    if (target != HWY_SCALAR && (here & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);  // without one: what is compiled for any processor
    body();
  }
  hwy::GetChosenTarget().Update(here);
}

TEST_P(StatisticsOfRuns, HaveTheSameBitsOnEveryInstructionSet) {
  for (const auto& [name, element] : runs())
    for (const std::int64_t n : kSizes) {
      SCOPED_TRACE(name + ", " + std::to_string(n));
      const HostArray a = run_of(element, GetParam(), n);
      std::vector<double> first;
      on_each_target([&] {
        const std::vector<double> numbers = numbers_in(statistics_of(a), n);
        if (first.empty()) first = numbers;
        for (std::size_t i = 0; i < first.size(); ++i)
          expect_same(numbers[i], first[i], std::to_string(i).c_str());
      });
    }
}

// Of what a step that made `after` of `before` has added.
PieceStatistics statistics_of_changes(const HostArray& after, const std::vector<float>& before) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(after.numel()) * size_of(after.dtype) + 1);
  store_bytes(after, bytes.data());
  cpu::UpdateTile tile;
  tile.n = after.numel();
  tile.from = bytes.data();
  tile.from_type = after.dtype;
  cpu::StatisticsInLanes lanes;
  cpu::add_changes(tile, before.data(), lanes);
  return cpu::together(lanes);
}

TEST(StatisticsOfChanges, AreThoseOfTheDifferencesOnEveryInstructionSet) {
  for (const auto& [name, element] : runs())
    for (const DType type : {DType::F32, DType::BF16})
      for (const std::int64_t n : kSizes) {
        SCOPED_TRACE(name + ", " + std::to_string(n));
        const HostArray after = run_of(element, type, n);
        HostArray changes = HostArray::zeros(DType::F32, {n});
        std::vector<float> before;
        for (std::int64_t i = 0; i < n; ++i) {
          before.push_back(i % 5 == 0 ? 0.25f : 0.0f);
          const double x = after[i];
          changes[i] = static_cast<float>(x) - before.back();
        }
        std::vector<double> first;
        on_each_target([&] {
          const PieceStatistics s = statistics_of_changes(after, before);
          expect_meaning(changes, s, 9.001 * 0x1p-24);
          const std::vector<double> numbers = numbers_in(s, n);
          if (first.empty()) first = numbers;
          for (std::size_t i = 0; i < first.size(); ++i)
            expect_same(numbers[i], first[i], std::to_string(i).c_str());
        });
      }
}

INSTANTIATE_TEST_SUITE_P(Types, StatisticsOfRuns,
                         testing::Values(DType::F32, DType::BF16, DType::F16, DType::F64),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace aloft

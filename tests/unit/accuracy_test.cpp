// Standards that results of kernels are held to.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "observe/accuracy/standards.h"

namespace aloft::accuracy {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Accuracy of(Standard standard, DType type, const std::vector<double>& result,
            const std::vector<double>& meaning, const std::vector<double>& benchmark = {}) {
  return accuracy_of(standard, {type, result, meaning, benchmark});
}

TEST(Accuracy, BinaryTakesTheMeaningRounded) {
  EXPECT_TRUE(of(Standard::Binary, DType::BF16, {1.0, 2.0}, {1.001, 2.0}).is_passed);
  const Accuracy a = of(Standard::Binary, DType::BF16, {1.0, 2.0, 3.0}, {1.0, 2.02, 3.0});
  EXPECT_FALSE(a.is_passed);
  EXPECT_EQ(a.worst, 1u);
  EXPECT_TRUE(of(Standard::Binary, DType::I32, {7}, {7}).is_passed);
  EXPECT_FALSE(of(Standard::Binary, DType::I32, {7}, {8}).is_passed);
}

// A counter is off by one where an addition is wrong: only what was rounded on the way may be.
TEST(Accuracy, OnlyIntegersThatWereRoundedMayBeOffAndByOne) {
  for (const DType type : {DType::I64, DType::I32, DType::I8, DType::U8}) {
    EXPECT_FALSE(of(Standard::Binary, type, {2}, {1}).is_passed);
    for (const double beside : {6, 7, 8})
      EXPECT_TRUE(of(Standard::Benchmark, type, {beside, 3}, {7, 3}, {7, 3}).is_passed);
    for (const double far : {5, 9}) {
      const Accuracy a = of(Standard::Benchmark, type, {3, far}, {3, 7}, {3, 7});
      EXPECT_FALSE(a.is_passed);
      EXPECT_EQ(a.worst, 1u);
    }
  }
  const Accuracy large = of(Standard::Binary, DType::I64, {1234567890123}, {1234567890124});
  EXPECT_EQ(large.why, "an element is 1234567890123, and must be 1234567890124");
}

// Below 2^-14 the numbers of f16 are 2^-24 apart, and half of that is what rounding takes.
TEST(Accuracy, SmallResultsInF16AreNotLetOff) {
  std::vector<double> meaning, near, opposite;
  for (int i = 1; i <= 64; ++i) {
    meaning.push_back((i + 0.3) * 0x1p-20);
    near.push_back(std::round(meaning.back() * 0x1p24) * 0x1p-24);
    opposite.push_back(-near.back());
  }
  const std::vector<double> zeros(meaning.size(), 0), same(meaning.size(), 6e-5);
  std::vector<double> half = near;
  half.back() /= 2;
  EXPECT_TRUE(of(Standard::Absolute, DType::F16, near, meaning).is_passed);
  EXPECT_TRUE(of(Standard::Benchmark, DType::F16, near, meaning, near).is_passed);
  EXPECT_TRUE(of(Standard::Benchmark, DType::F16, near, meaning, meaning).is_passed);
  for (const auto& wrong : {zeros, same, opposite, half}) {
    EXPECT_FALSE(of(Standard::Absolute, DType::F16, wrong, meaning).is_passed);
    EXPECT_FALSE(of(Standard::Benchmark, DType::F16, wrong, meaning, near).is_passed);
  }
  // The smallest there is, and what is next to nothing.
  EXPECT_TRUE(of(Standard::Absolute, DType::F16, {0x1p-24, 0}, {0.6 * 0x1p-24, 1e-9}).is_passed);
}

// Products of values that were kept in f16 in between, such as the gradient of logits.
TEST(Accuracy, WhatIsMadeOfSmallValuesInF16MayLoseTheirRounding) {
  std::vector<double> meaning, off, far;
  for (int i = 1; i <= 64; ++i) {
    meaning.push_back(i * 0x1p-20);
    off.push_back(meaning.back() + (i % 2 ? 0x1p-22 : -0x1p-22));
    far.push_back(meaning.back() + (i % 2 ? 0x1p-18 : -0x1p-18));
  }
  const auto passes = [&](const std::vector<double>& result, DType inner) {
    return accuracy_of(Standard::Benchmark, {DType::F16, result, meaning, meaning, inner})
        .is_passed;
  };
  EXPECT_TRUE(passes(off, DType::F16));
  EXPECT_FALSE(passes(off, DType::F64));
  EXPECT_FALSE(passes(far, DType::F16));
}

TEST(Accuracy, AbsoluteMeasuresEachElementByItsOwnSize) {
  EXPECT_TRUE(of(Standard::Absolute, DType::F32, {1 + 0x1p-22}, {1}).is_passed);
  EXPECT_FALSE(of(Standard::Absolute, DType::F32, {1 + 0x1p-19}, {1}).is_passed);
  EXPECT_TRUE(of(Standard::Absolute, DType::BF16, {1 + 0x1p-9}, {1}).is_passed);
  EXPECT_FALSE(of(Standard::Absolute, DType::F16, {1 + 0x1p-9}, {1}).is_passed);
}

// Small gradients are not let off because they are small (docs/acc-check.md).
TEST(Accuracy, SmallTensorsAreMeasuredLikeLargeOnes) {
  for (const double scale : {1.0, 1e-6, 1e6}) {
    EXPECT_TRUE(
        of(Standard::Absolute, DType::F32, {scale, 3 * scale}, {scale, 3 * scale}).is_passed);
    EXPECT_FALSE(of(Standard::Absolute, DType::F32, {1.01 * scale, 3 * scale}, {scale, 3 * scale})
                     .is_passed);
  }
}

// What is rounded at random may be the neighbour of what it means, and no more.
TEST(Accuracy, AbsoluteTakesNeighboursWhereThereAreSome) {
  const std::vector<double> meaning = {1, 0.5}, apart = {0.125, 0.0625};
  const auto passes = [&](std::vector<double> result) {
    return accuracy_of(Standard::Absolute, {DType::F32, result, meaning, {}, DType::F64, apart})
        .is_passed;
  };
  EXPECT_TRUE(passes({1.125, 0.4375}));
  EXPECT_FALSE(passes({1.125, 0.375}));
  EXPECT_FALSE(passes({1.25, 0.5}));
}

// Elements in f32 whose squares are summed in double (docs/acc-check.md).
TEST(Accuracy, SumsOfF32InDoubleMayLoseWhatF32Loses) {
  const std::vector<double> meaning = {38.486606, 1200.5}, near = {38.4866088, 1200.5};
  const auto passes = [&](const std::vector<double>& result, DType inner) {
    return accuracy_of(Standard::Benchmark, {DType::F64, result, meaning, meaning, inner})
        .is_passed;
  };
  EXPECT_TRUE(passes(near, DType::F32));
  EXPECT_FALSE(passes(near, DType::F64));
  EXPECT_FALSE(passes({38.6, 1200.5}, DType::F32));
}

TEST(Accuracy, UlpsCountFromTheMeaning) {
  std::vector<double> meaning(4096, 1.0), result = meaning;
  for (int i = 0; i < 3; ++i) result[static_cast<std::size_t>(i)] = 1 + 0x1p-6;  // 2 ulp of bf16
  const Accuracy few = of(Standard::Ulp, DType::BF16, result, meaning);
  EXPECT_TRUE(few.is_passed);
  EXPECT_EQ(few.max_ulp, 2);
  for (int i = 0; i < 9; ++i) result[static_cast<std::size_t>(i)] = 1 + 0x1p-6;
  EXPECT_FALSE(of(Standard::Ulp, DType::BF16, result, meaning).is_passed);
  for (double& r : result) r = 1 + 60 * 0x1p-23;
  EXPECT_TRUE(of(Standard::Ulp, DType::F32, result, meaning).is_passed);
  for (double& r : result) r = 1 + 70 * 0x1p-23;
  EXPECT_FALSE(of(Standard::Ulp, DType::F32, result, meaning).is_passed);
}

// Shares alone let a few elements hold any number.
TEST(Accuracy, NoElementOfAProductIsOffByMoreThanItsSumCanLose) {
  const std::int64_t terms = 64;
  std::vector<double> meaning(432, 1.0), summed(432, 50.0), result = meaning;
  const auto judged = [&](DType type) {
    return accuracy_of(Standard::Ulp, {type, result, meaning, {}, DType::F64, {}, summed, terms});
  };
  for (std::size_t i = 0; i < 12; ++i) result[36 * i] = 1 + 50 * 64 * 0x1p-24;
  EXPECT_TRUE(judged(DType::F32).is_passed);  // summands that cancel lose so much
  result[72] = 1e6;
  const Accuracy a = judged(DType::F32);
  EXPECT_FALSE(a.is_passed);
  EXPECT_EQ(a.worst, 72u);
  EXPECT_NE(a.why.find("a sum of 64 products"), std::string::npos) << a.why;
  EXPECT_LT(a.share_over_limit, 0.05);
  result.assign(4320, 1.0), meaning = result, summed.assign(4320, 50.0);
  result[7] = 1.5;
  EXPECT_LT(judged(DType::BF16).share_over_limit, 0.001);
  EXPECT_FALSE(judged(DType::BF16).is_passed);
  EXPECT_FALSE(judged(DType::F64).is_passed);
}

// Of what is left of a sum that cancels units say nothing: one of few elements may be off by many,
// by what f32 loses of the terms and no more.
TEST(Accuracy, UnitsOfWhatCancelsAreNotCounted) {
  for (const std::size_t elements : {std::size_t{1}, std::size_t{72}}) {
    std::vector<double> meaning(elements, 2.0), result = meaning, summed(elements, 50.0);
    const auto passes = [&](DType type) {
      return accuracy_of(Standard::Ulp, {type, result, meaning, {}, DType::F64, {}, summed, 64})
          .is_passed;
    };
    meaning[0] = 4.3617212e-5, result[0] = meaning[0] + 1.09e-6;
    EXPECT_TRUE(passes(DType::BF16)) << elements;
    EXPECT_TRUE(passes(DType::F16)) << elements;
    EXPECT_TRUE(passes(DType::F32)) << elements;
    result[0] = meaning[0] + 1e-4;  // more than is usual
    EXPECT_FALSE(passes(DType::BF16)) << elements;
    result[0] = -1;
    for (const DType type : {DType::BF16, DType::F16, DType::F32, DType::F64})
      EXPECT_FALSE(passes(type)) << elements;
    meaning[0] = 2, result[0] = 2 + 0x1p-5;  // two units of bf16, and nothing cancels
    EXPECT_FALSE(passes(DType::BF16)) << elements;
  }
}

TEST(Accuracy, BenchmarkAllowsSomeTimesWhatTheTypeLoses) {
  std::vector<double> meaning, benchmark, near, far;
  for (int i = 1; i <= 100; ++i) {
    meaning.push_back(i);
    benchmark.push_back(i * (1 + 0x1p-7));
    near.push_back(i * (1 + 0x1p-6));
    far.push_back(i * (1 + 0x1p-5));
  }
  EXPECT_TRUE(of(Standard::Benchmark, DType::BF16, near, meaning, benchmark).is_passed);
  EXPECT_FALSE(of(Standard::Benchmark, DType::BF16, far, meaning, benchmark).is_passed);
  std::vector<double> one = meaning;
  one[50] *= 1.5;
  EXPECT_FALSE(of(Standard::Benchmark, DType::BF16, one, meaning, benchmark).is_passed);
}

// The largest element of a tensor says nothing of what a small one may lose.
TEST(Accuracy, OfTheBenchmarkEachElementIsMeasuredByItsSizeOrThatOfMost) {
  for (const DType type : {DType::BF16, DType::F16}) {
    std::vector<double> meaning(1 << 16, 1.0);
    meaning[0] = 40;  // the root mean square is 1.01
    const auto judged = [&](std::size_t i, double value) {
      std::vector<double> result = meaning;
      result[i] = value;
      return of(Standard::Benchmark, type, result, meaning, meaning);
    };
    EXPECT_TRUE(judged(0, 40 * (1 + 0x1p-10)).is_passed);
    EXPECT_TRUE(judged(7, 1 + 0x1p-9).is_passed);
    const Accuracy a = judged(7, 1.1);
    EXPECT_FALSE(a.is_passed);
    EXPECT_EQ(a.worst, 7u);
    EXPECT_NE(a.why.find("an element is 1.1, and means 1"), std::string::npos) << a.why;
    // Where the benchmark is off by as much, in some element, so may others be.
    std::vector<double> off = meaning, benchmark = meaning;
    off[7] = 1.1, benchmark[9] = 1.08;
    EXPECT_TRUE(of(Standard::Benchmark, type, off, meaning, benchmark).is_passed);
  }
}

// What a tensor holds elsewhere says nothing of how far a small element may be off: values beside
// queries and keys, whose gradients are much smaller.
TEST(Accuracy, OfLowTypesElementsAreMeasuredByThoseNearThem) {
  const std::int64_t rows = 16, columns = 24;
  std::vector<double> meaning, benchmark;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const double size = i % columns < 16 ? 0.01 : 1;
    meaning.push_back(size * (i % 2 ? 1 : -1));
    benchmark.push_back(meaning.back() * (1 + 0x1p-7));
  }
  const std::vector<std::int64_t> shape = {rows, columns};
  const auto judged = [&](std::size_t i, double factor, bool has_shape) {
    std::vector<double> result = meaning;
    result[i] *= factor;
    Compared c{DType::BF16, result, meaning, benchmark};
    if (has_shape) c.shape = shape;
    return accuracy_of(Standard::Benchmark, c);
  };
  EXPECT_TRUE(judged(5, -1, false).is_passed);  // beside all it is nothing
  const Accuracy a = judged(5, -1, true);
  EXPECT_FALSE(a.is_passed);
  EXPECT_EQ(a.worst, 5u);
  for (const std::size_t i : {5, 20}) EXPECT_TRUE(judged(i, 1 + 0x1p-5, true).is_passed) << i;
  EXPECT_FALSE(judged(20, 1.1, true).is_passed);
  // An element in which much cancels is off by a part of what its neighbours are.
  meaning[20] = 1e-6, benchmark[20] = 0.004;
  EXPECT_TRUE(judged(20, 3000, true).is_passed);
}

// The gradient of a query that sees one key is 0, and computed as a difference; one that is not
// small beside the others is wrong all the same.
TEST(Accuracy, WhatMeansNothingIsMeasuredByWhatCancels) {
  const std::int64_t rows = 16, columns = 24;
  for (const auto& [type, u] : {std::pair(DType::BF16, 0x1p-8), {DType::F16, 0x1p-10}}) {
    std::vector<double> meaning, benchmark;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      meaning.push_back(i < columns ? 0 : i % 2 ? 0.01 : -0.01);
      benchmark.push_back(meaning.back() * (1 + u));
    }
    const std::vector<std::int64_t> shape = {rows, columns};
    const auto passes = [&](double first) {
      std::vector<double> result = meaning;
      result[3] = first;
      Compared c{type, result, meaning, benchmark};
      c.shape = shape;
      return accuracy_of(Standard::Benchmark, c).is_passed;
    };
    EXPECT_TRUE(passes(0.01 * u * u / 2));
    EXPECT_FALSE(passes(0.01 * u * 8)) << "a small part of the others, and no rounding";
  }
}

// A bias of keys, whose gradient is a sum that cancels beside others that do not.
TEST(Accuracy, NoElementOfASumIsOffByMoreThanItsTermsCanLose) {
  std::vector<double> meaning(48, 1.0), summed(48, 2.0);
  meaning[20] = 0.003;
  const auto judged = [&](double value) {
    std::vector<double> result = meaning;
    result[20] = value;
    return accuracy_of(Standard::Benchmark,
                       {DType::BF16, result, meaning, meaning, DType::F64, {}, summed, 16});
  };
  EXPECT_TRUE(judged(0.003 + 0x1p-16).is_passed);
  const Accuracy a = judged(-0.003);
  EXPECT_FALSE(a.is_passed);
  EXPECT_NE(a.why.find("a sum of 16 terms may lose"), std::string::npos) << a.why;
}

// msprobe takes infinities of different sign for equal.
TEST(Accuracy, InfinitiesHaveASign) {
  for (const Standard s :
       {Standard::Binary, Standard::Absolute, Standard::Ulp, Standard::Benchmark}) {
    EXPECT_TRUE(of(s, DType::F32, {kInf, 1}, {kInf, 1}, {kInf, 1}).is_passed);
    EXPECT_FALSE(of(s, DType::F32, {kInf, 1}, {-kInf, 1}, {-kInf, 1}).is_passed);
    EXPECT_FALSE(of(s, DType::F32, {kInf, 1}, {5, 1}, {5, 1}).is_passed);
    EXPECT_FALSE(of(s, DType::F32, {NAN, 1}, {5, 1}, {5, 1}).is_passed);
    EXPECT_FALSE(of(s, DType::F32, {5, 1}, {NAN, 1}, {NAN, 1}).is_passed);
    EXPECT_TRUE(of(s, DType::F16, {kInf, 1}, {70000, 1}, {kInf, 1}).is_passed);
  }
}

TEST(Accuracy, OfNoElementsAllPass) {
  for (const Standard s :
       {Standard::Binary, Standard::Absolute, Standard::Ulp, Standard::Benchmark})
    EXPECT_TRUE(of(s, DType::BF16, {}, {}).is_passed);
}

}  // namespace
}  // namespace aloft::accuracy

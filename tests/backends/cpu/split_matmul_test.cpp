// Products of f32 on bf16 matrix units (ProductForm) against sums in double, beside plain f32:
// ordinary values, cancellation, wide ranges of exponents, the edges of the format. Where the
// processor has no such units the same products run plainly and the same bounds hold.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backends/cpu/float_buffer.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/matmul/matmul_grid.h"
#include "backends/cpu/matmul/planes.h"

namespace aloft::cpu {
namespace {

using test::FloatBuffer;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<float>::max();

struct Problem {
  std::int64_t m = 70, n = 75, k = 300;
  std::vector<double> a, b;  // [m, k], [k, n], values of `type`
  DType type = DType::F32;
};

Problem make(const std::function<double(double, std::int64_t row, std::int64_t k)>& of_a,
             const std::function<double(double, std::int64_t k, std::int64_t col)>& of_b,
             DType type = DType::F32, Problem p = {}) {
  p.type = type;
  p.a = test::random_values(p.m * p.k, DType::F32, 1);
  p.b = test::random_values(p.k * p.n, DType::F32, 2);
  for (std::int64_t i = 0; i < p.m * p.k; ++i)
    p.a[i] = test::rounded(of_a(p.a[i], i / p.k, i % p.k), type);
  for (std::int64_t i = 0; i < p.k * p.n; ++i)
    p.b[i] = test::rounded(of_b(p.b[i], i / p.n, i % p.n), type);
  return p;
}

std::vector<double> run(const Problem& p, ProductForm form, bool transposed_a, bool transposed_b) {
  MatmulSpec s;
  s.m = p.m, s.n = p.n, s.k = p.k;
  s.a = s.b = p.type;
  s.form = form;
  s.transpose_a = transposed_a;
  s.transpose_b = transposed_b;
  s.threads = 2;
  const auto turned = [&](const std::vector<double>& x, bool transposed, std::int64_t rows,
                          std::int64_t cols) {
    if (!transposed) return x;
    std::vector<double> t(x.size());
    for (std::int64_t i = 0; i < rows * cols; ++i) t[i % cols * rows + i / cols] = x[i];
    return t;
  };
  FloatBuffer a(p.type, turned(p.a, transposed_a, p.m, p.k)),
      b(p.type, turned(p.b, transposed_b, p.k, p.n)), c(DType::F32, p.m * p.n);
  MatmulGrid grid(s);
  FloatBuffer scratch(DType::F32, static_cast<std::int64_t>(grid.scratch_bytes() + 3) / 4);
  grid.run({a.data(), b.data(), nullptr, c.data(), scratch.data()}, {1, p.m, p.k});
  c.expect_guards();
  scratch.expect_guards();
  std::vector<double> out(p.m * p.n);
  for (std::int64_t i = 0; i < p.m * p.n; ++i) out[i] = c.get(i);
  return out;
}

std::vector<double> run(const Problem& p, ProductForm form, bool transposed = false) {
  return run(p, form, transposed, transposed);
}

// The largest error of an element, as a part of the sum of its products' magnitudes: what f32 sums
// are bounded by whatever cancels.
double error_of(const Problem& p, const std::vector<double>& got) {
  double worst = 0;
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      double want = 0, magnitude = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        const double product = p.a[i * p.k + k] * p.b[k * p.n + j];
        want += product, magnitude += std::abs(product);
      }
      if (magnitude > 0) worst = std::max(worst, std::abs(got[i * p.n + j] - want) / magnitude);
    }
  return worst;
}

struct Family {
  const char* name;
  Problem problem;
};

double power(double x, std::int64_t i, int range) {
  return std::ldexp(x, static_cast<int>(i * 37 % (2 * range + 1)) - range);
}

std::vector<Family> families() {
  const auto same = [](double x, auto, auto) { return x; };
  return {
      {"uniform in (-1, 1)", make(same, same)},
      {"all positive", make([](double x, auto, auto) { return 1 + std::abs(x); },
                            [](double x, auto, auto) { return 1 + std::abs(x); })},
      {"cancelling pairs", make([](double x, auto, auto k) { return k % 2 ? -1 - x / 4096 : 1; },
                                [](double x, auto, auto) { return 1 + x / 4096; })},
      {"exponents over 2^-20..2^20 along k",
       make([](double x, auto, auto k) { return power(x, k, 20); },
            [](double x, auto k, auto) { return power(x, k, 20); })},
      {"exponents that compensate", make([](double x, auto, auto k) { return power(x, k, 40); },
                                         [](double x, auto k, auto) {
                                           return std::ldexp(x, 40 - static_cast<int>(k * 37 % 81));
                                         })},
      {"rows of 1e30 and 1e-30, columns of 1",
       make([](double x, auto row, auto) { return row % 2 ? 1e30 * x : 1e-30 * x; }, same)},
      {"1e30 times 1e-30", make([](double x, auto, auto) { return 1e30 * x; },
                                [](double x, auto, auto) { return 1e-30 * x; })},
      {"last bits only", make([](double, auto r, auto k) { return 1 + (r * 7 + k) % 64 * 0x1p-23; },
                              [](double, auto k, auto c) {
                                return (k % 2 ? -1 : 1) * (1 + (c * 5 + k) % 64 * 0x1p-23);
                              })},
  };
}

// Without the matrix units a split product is a plain one, which says nothing about splitting.
class SplitMatmul : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_features().amx_bf16)
      GTEST_SKIP() << "no matrix units here: products are not split into planes";
  }
};

TEST_F(SplitMatmul, SixProductsAreAsExactAsPlainF32AndThreeTo16Bits) {
  for (const Family& f : families())
    for (const bool transposed : {false, true}) {
      const double plain = error_of(f.problem, run(f.problem, ProductForm::Plain, transposed));
      const double six = error_of(f.problem, run(f.problem, ProductForm::Bf16x6, transposed));
      const double three = error_of(f.problem, run(f.problem, ProductForm::Bf16x3, transposed));
      if (!transposed)
        std::printf("%-38s plain 2^%.1f  x6 2^%.1f  x3 2^%.1f\n", f.name, std::log2(plain),
                    std::log2(six), std::log2(three));
      EXPECT_LE(six, 2 * plain + 0x1p-23) << f.name;
      EXPECT_LE(three, 0x1p-15) << f.name;
    }
}

TEST(PlainOrSplitMatmul, F16ProductsAreBetterThanF16RoundingAtAnyMagnitude) {
  const auto wide = [](int range) {
    return [range](double x, auto, auto k) { return power(x, k, range); };
  };
  for (const Problem& p : {make(wide(7), wide(7), DType::F16), make(wide(14), wide(14), DType::F16),
                           make([](double x, auto, auto) { return x * 65504; },
                                [](double x, auto, auto) { return x * 0x1p-14; }, DType::F16)})
    EXPECT_LE(error_of(p, run(p, ProductForm::Plain)), 0x1p-20);
}

// Whole panels of whole depths, packed between the tile products; more than one part of K and band.
TEST(PlainOrSplitMatmul, WholePanelsOfEveryLayout) {
  const auto ranges = [](double x, auto, auto k) { return power(x, k, 7); };
  Problem shape;
  shape.m = 416, shape.n = 96, shape.k = 1280;
  const Problem f16 = make(ranges, ranges, DType::F16, shape);
  const Problem f32 = make(ranges, ranges, DType::F32, shape);
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      EXPECT_LE(error_of(f16, run(f16, ProductForm::Plain, a, b)), 0x1p-20);
      EXPECT_LE(error_of(f32, run(f32, ProductForm::Bf16x6, a, b)), 0x1p-20);
      EXPECT_LE(error_of(f32, run(f32, ProductForm::Bf16x3, a, b)), 0x1p-15);
    }
}

TEST(PlainOrSplitMatmul, InfinitiesAndNansOfF16InWholePanels) {
  Problem shape;
  shape.m = 64, shape.n = 64, shape.k = 1088;  // two parts of K
  Problem p = make([](double x, auto, auto) { return x; }, [](double x, auto, auto) { return x; },
                   DType::F16, shape);
  const std::vector<double> plain = run(p, ProductForm::Plain);
  p.a[3 * p.k + 5] = kInf;
  p.a[40 * p.k + 1087] = std::nan("");
  p.b[7 * p.n + 33] = -kInf;
  for (const bool transposed : {false, true}) {
    const std::vector<double> got = run(p, ProductForm::Plain, transposed);
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t j = 0; j < p.n; ++j) {
        double want = 0;
        for (std::int64_t k = 0; k < p.k; ++k) want += p.a[i * p.k + k] * p.b[k * p.n + j];
        const double here = got[i * p.n + j];
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(here)) << i << ", " << j;
        } else if (std::isinf(want)) {
          EXPECT_EQ(here, want) << i << ", " << j;
        } else {  // a row that was summed again has its own rounding: 2^-17 a product of halves
          EXPECT_NEAR(here, plain[i * p.n + j], 0x1p-17 * std::sqrt(p.k)) << i << ", " << j;
        }
      }
  }
}

TEST(SplitPlanes, TwoPlanesHoldEveryF16) {
  constexpr std::int64_t kAll = 65536;
  std::vector<std::uint16_t> values(kAll), out(2 * kAll);
  for (std::int64_t i = 0; i < kAll; ++i) values[i] = static_cast<std::uint16_t>(i);
  for (const std::int64_t n : {kAll, std::int64_t{5}}) {  // in vectors, and singly
    split_into_planes({values.data(), DType::F16, n, kAll / n, n, 2, out.data(), n, kAll});
    for (std::int64_t i = 0; i < kAll / n * n; ++i) {
      const double value = scalar::f64_of(scalar::F16{values[i]});
      const double high = scalar::f64_of(scalar::Bf16{out[i]});
      const double low = scalar::f64_of(scalar::Bf16{out[kAll + i]});
      if (std::isfinite(value)) {
        ASSERT_EQ(high + low, value) << i;
        ASSERT_LE(std::abs(low), std::abs(value) * 0x1p-8) << i;
      } else {
        ASSERT_EQ(std::isnan(high), std::isnan(value)) << i;
        ASSERT_EQ(std::isinf(high), std::isinf(value)) << i;
        ASSERT_EQ(out[kAll + i], 0) << i;
      }
    }
  }
}

TEST(SplitPlanes, PlanesAddUpToTheValue) {
  std::vector<float> values = {
      0.0f,        -0.0f,           1.0f,        0x1.fffffep0f, -0x1.fffffep127f,
      0x1.fep127f, 0x1.fefffep127f, 0x1.ffp127f, 0x1p-126f,     0x1.234568p-100f};
  std::uint32_t state = 1;
  for (int i = 0; i < 1000; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(std::ldexp(static_cast<float>(static_cast<std::int32_t>(state)),
                                static_cast<int>(state >> 8) % 180 - 120));
  }
  const auto n = static_cast<std::int64_t>(values.size());
  for (const int planes : {2, 3}) {
    std::vector<std::uint16_t> out(planes * n);
    split_into_planes({values.data(), DType::F32, n, 1, n, planes, out.data(), n, n});
    for (std::int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int p = 0; p < planes; ++p) sum += scalar::f64_of(scalar::Bf16{out[p * n + i]});
      ASSERT_NEAR(sum, values[i], planes == 3 ? 0 : std::abs(values[i]) * 0x1p-16) << values[i];
    }
  }
}

TEST(SplitPlanes, PlanesKeepNanAndInfinity) {
  const std::uint32_t odd[] = {0x7f800001u, 0xff800001u, 0x7fffffffu, 0x7f800000u, 0xff800000u};
  float values[64];
  for (int i = 0; i < 64; ++i) values[i] = std::bit_cast<float>(odd[i % 5]);
  for (const std::int64_t n : {64, 5}) {  // in vectors, and singly
    std::uint16_t out[3 * 64];
    split_into_planes({values, DType::F32, n, 1, n, 3, out, n, 64});
    for (std::int64_t i = 0; i < n; ++i) {
      const double first = scalar::f64_of(scalar::Bf16{out[i]});
      if (std::isnan(values[i]))
        EXPECT_TRUE(std::isnan(first)) << i;
      else
        EXPECT_EQ(first, values[i]);
      EXPECT_EQ(out[64 + i] | out[128 + i], 0);
    }
  }
}

TEST(PlainOrSplitMatmul, TheEdgesOfTheFormat) {
  for (const ProductForm form : {ProductForm::Plain, ProductForm::Bf16x6, ProductForm::Bf16x3}) {
    Problem p =
        make([](double, auto, auto) { return 0.0; }, [](double, auto, auto) { return 1.0; });
    const auto set = [&](std::int64_t row, std::int64_t k, double v) { p.a[row * p.k + k] = v; };
    set(0, 0, kLargest);  // its first plane would round to infinity
    set(1, 1, kInf);
    set(2, 2, -kInf);
    set(3, 3, kInf), set(3, 4, -kInf);  // NaN
    set(4, 5, std::nan(""));
    set(5, 6, kLargest), set(5, 7, kLargest);  // overflows
    set(6, 8, 0x1p-149);                       // a denormal
    set(7, 9, 0x1.8p-126);
    for (std::int64_t c = 0; c < p.n; ++c) p.b[10 * p.n + c] = 0x1.01p-1;
    set(8, 10, kLargest);  // times the value above: near the largest, not above
    const std::vector<double> got = run(p, form);
    const double close = form == ProductForm::Bf16x3 ? 0x1p-15 : 0x1p-22;
    const double denormal = form == ProductForm::Plain ? 0 : 0x1p-126;
    for (std::int64_t c = 0; c < p.n; ++c) {
      const auto at = [&](std::int64_t row) { return got[row * p.n + c]; };
      // Two planes of it add up to 2^128.
      if (form == ProductForm::Bf16x3 && cpu_features().amx_bf16)
        EXPECT_EQ(at(0), kInf);
      else
        EXPECT_NEAR(at(0), kLargest, kLargest * close);
      EXPECT_EQ(at(1), kInf);
      EXPECT_EQ(at(2), -kInf);
      EXPECT_TRUE(std::isnan(at(3)));
      EXPECT_TRUE(std::isnan(at(4)));
      EXPECT_EQ(at(5), kInf);
      EXPECT_NEAR(at(6), 0x1p-149, denormal);
      EXPECT_NEAR(at(7), 0x1.8p-126, denormal + 0x1p-126 * close);
      EXPECT_NEAR(at(8), kLargest * 0x1.01p-1, kLargest * close);
    }
  }
}

TEST_F(SplitMatmul, AnOverflowOfRoundedPlanesIsRepaired) {
  // Both factors round up to 2^64, whose square is beyond the largest float.
  constexpr double kFactor = 0x1p64 * (1 - 0x1p-10);
  Problem p = make([](double, auto, auto k) { return k == 0 ? kFactor : 0.0; },
                   [](double, auto k, auto) { return k == 0 ? kFactor : 0.0; });
  const double want = p.a[0] * p.b[0];
  ASSERT_LT(want, kLargest);
  for (const ProductForm form : {ProductForm::Bf16x6, ProductForm::Bf16x3})
    for (const double v : run(p, form)) ASSERT_NEAR(v, want, want * 0x1p-15);
}

TEST(SplitEngine, IsTheUnitsWhereTheyAre) {
  MatmulSpec s;
  s.m = s.n = s.k = 32;
  const bool there = cpu_features().amx_bf16;
  const std::string plain = MatmulGrid(s).engine();
  s.form = ProductForm::Bf16x6;
  EXPECT_EQ(MatmulGrid(s).engine(), there ? "amx f32 by bf16x6" : plain);
  s.form = ProductForm::Bf16x3;
  EXPECT_EQ(MatmulGrid(s).engine(), there ? "amx f32 by bf16x3" : plain);
}

}  // namespace
}  // namespace aloft::cpu

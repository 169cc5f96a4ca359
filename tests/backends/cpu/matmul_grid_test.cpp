// The tile engine against sums in double: every type, transpose and odd size, partial batches,
// special values, and the same bits on 1, 2 and 4 threads. ctest runs it again with the instruction
// set capped.
#include "backends/cpu/matmul/matmul_grid.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "backends/cpu/float_buffer.h"
#include "backends/cpu/isa.h"
#include "types/tolerance.h"

namespace aloft::cpu {
namespace {

using test::FloatBuffer;
using test::random_values;

struct Case {
  MatmulSpec spec;
  MatmulActual actual;
  std::vector<double> a, b, bias, old;
};

Case make_case(MatmulSpec spec) {
  Case c;
  c.actual = {spec.batch, spec.m, spec.k};
  c.a = random_values(spec.batch * spec.m * spec.k, spec.a, 1);
  c.b = random_values(spec.batch * spec.k * spec.n, spec.b, 2);
  if (spec.bias) c.bias = random_values(spec.n, *spec.bias, 3);
  if (spec.accumulate) c.old = random_values(spec.batch * spec.m * spec.n, spec.c, 4);
  c.spec = std::move(spec);
  return c;
}

// The result's buffer after a run on `threads` threads.
FloatBuffer run(const Case& c, int threads) {
  MatmulSpec spec = c.spec;
  spec.threads = threads;
  FloatBuffer a(spec.a, c.a), b(spec.b, c.b), out(spec.c, spec.batch * spec.m * spec.n);
  FloatBuffer bias(spec.bias.value_or(DType::F32), c.bias);
  if (spec.accumulate) out = FloatBuffer(spec.c, c.old);
  MatmulGrid grid(spec);
  FloatBuffer scratch(DType::F32, static_cast<std::int64_t>(grid.scratch_bytes() + 3) / 4);
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  grid.run({a.data(), b.data(), bias.data(), out.data(), scratch.data()}, c.actual);
  omp_set_num_threads(before);
  out.expect_guards();
  scratch.expect_guards();
  return out;
}

// A chain of sums in f32 rounds each partial sum by at most u of it, evenly spread and as good as
// independent: six deviations (u / sqrt(3) each) are what no element of these many passes.
// `squares`: the sum of the squares of the partial sums.
double tolerance(const MatmulSpec& s, double want, double squares) {
  const double deviation = unit_roundoff(DType::F32) * std::sqrt(squares / 3);
  double allowed = allowed_error(s.c, 1, want) + 6 * deviation;
  // Two of the four products of halves are rounded below f16's own precision.
  if (s.a == DType::F16 && s.b == DType::F16 && s.c == DType::F16)
    allowed += 0x1p-17 * std::sqrt(static_cast<double>(s.k));
  return allowed;
}

void expect_right_at(const Case& c, FloatBuffer& got, std::int64_t b, std::int64_t i,
                     std::int64_t j) {
  const MatmulSpec& s = c.spec;
  double want = s.bias ? c.bias[j] : 0;
  const std::int64_t at = (b * s.m + i) * s.n + j;
  if (s.accumulate) want += c.old[at];
  double squares = want * want;
  for (std::int64_t k = 0; k < c.actual.k; ++k) {
    want += c.a[b * s.m * s.k + (s.transpose_a ? k * s.m + i : i * s.k + k)] *
            c.b[b * s.n * s.k + (s.transpose_b ? j * s.k + k : k * s.n + j)];
    squares += want * want;
  }
  ASSERT_NEAR(got.get(at), want, tolerance(s, want, squares))
      << name_of(s.a) << name_of(s.b) << "->" << name_of(s.c) << " " << s.batch << "x" << s.m << "x"
      << s.n << "x" << s.k << (s.transpose_a ? " ta" : "") << (s.transpose_b ? " tb" : "") << " at "
      << b << "," << i << "," << j;
}

void expect_right(const Case& c, FloatBuffer& got) {
  for (std::int64_t b = 0; b < c.actual.batch; ++b)
    for (std::int64_t i = 0; i < c.actual.m; ++i)
      for (std::int64_t j = 0; j < c.spec.n; ++j)
        ASSERT_NO_FATAL_FAILURE(expect_right_at(c, got, b, i, j));
}

void expect_right_on_any_threads(const Case& c) {
  FloatBuffer one = run(c, 1);
  expect_right(c, one);
  for (const int threads : {2, 4}) EXPECT_EQ(run(c, threads).copy(), one.copy()) << threads;
}

struct Types {
  DType a, b, c;
};
constexpr Types kTypes[] = {
    {DType::F32, DType::F32, DType::F32},   {DType::BF16, DType::BF16, DType::BF16},
    {DType::BF16, DType::BF16, DType::F32}, {DType::F16, DType::F16, DType::F16},
    {DType::F16, DType::F16, DType::F32},   {DType::BF16, DType::F32, DType::F32},
    {DType::F32, DType::F16, DType::BF16}};

TEST(MatmulGrid, EveryTypeTransposeAndOddSize) {
  constexpr std::int64_t kSizes[][3] = {{1, 1, 1},    {17, 1, 5},    {3, 70, 33}, {33, 31, 64},
                                        {64, 64, 64}, {65, 97, 130}, {47, 130, 1}};
  for (const Types& t : kTypes)
    for (const auto& [m, n, k] : kSizes)
      for (const int transposes : {0, 1, 2, 3}) {
        MatmulSpec s;
        s.m = m, s.n = n, s.k = k;
        s.a = t.a, s.b = t.b, s.c = t.c;
        s.transpose_a = transposes & 1, s.transpose_b = transposes & 2;
        Case c = make_case(s);
        FloatBuffer got = run(c, 2);
        expect_right(c, got);
      }
}

// X X^T and X^T X: half is computed, and the bits are those of the product with a copy of X.
TEST(MatmulGrid, AMatrixTimesItselfHasTheBitsOfTheWholeProduct) {
  constexpr std::int64_t kSizes[][2] = {{1, 3}, {33, 5}, {96, 64}, {257, 1500}, {768, 130}};
  for (const Types& t : kTypes)
    for (const auto& [n, k] : kSizes)
      for (const bool by_columns : {false, true}) {
        if (t.a != t.b) continue;
        MatmulSpec spec;
        spec.m = spec.n = n, spec.k = k;
        spec.a = t.a, spec.b = t.b, spec.c = t.c;
        spec.transpose_a = by_columns, spec.transpose_b = !by_columns;
        Case c = make_case(spec);
        c.b = c.a;
        const auto whole = run(c, 2).copy();
        for (const int threads : {1, 2, 3}) {
          spec.threads = threads;
          const MatmulGrid grid(spec);
          FloatBuffer x(spec.a, c.a), out(spec.c, n * n);
          FloatBuffer scratch(DType::F32, static_cast<std::int64_t>(grid.scratch_bytes() + 3) / 4);
          const int before = omp_get_max_threads();
          omp_set_num_threads(threads);
          grid.run({x.data(), x.data(), nullptr, out.data(), scratch.data()}, c.actual);
          omp_set_num_threads(before);
          out.expect_guards();
          scratch.expect_guards();
          EXPECT_EQ(out.copy(), whole) << n << "x" << k << (by_columns ? " columns" : " rows");
        }
      }
}

TEST(MatmulGrid, SameBitsOnAnyThreads) {
  for (const Types& t : kTypes)
    for (const bool transposed : {false, true}) {
      MatmulSpec s;
      s.m = 320, s.n = 416, s.k = 200;
      s.a = t.a, s.b = t.b, s.c = t.c;
      s.transpose_a = transposed, s.transpose_b = !transposed;
      s.bias = t.c;
      expect_right_on_any_threads(make_case(s));
    }
}

TEST(MatmulGrid, ARowHasTheSameBitsAmongAnyNumberOfRowsOfAnyBound) {
  for (const Types& t : kTypes)
    for (const std::int64_t depth : {90, 2301}) {  // one part of K, and two or three
      MatmulSpec s;
      s.m = 150, s.n = 70, s.k = depth;
      s.a = t.a, s.b = t.b, s.c = t.c;
      const Case whole = make_case(s);
      const auto all = run(whole, 2).copy();
      const auto row_bytes = static_cast<std::ptrdiff_t>(all.size() / s.m);
      for (const std::int64_t rows : {1, 20, 33, 149}) {
        Case fewer = whole, smaller = whole;
        fewer.actual.m = rows;
        smaller.spec.m = smaller.actual.m = rows;
        smaller.a.resize(rows * depth);
        auto of_bound = run(fewer, 2).copy(), of_size = run(smaller, 2).copy();
        of_bound.resize(rows * row_bytes);
        const std::vector want(all.begin(), all.begin() + rows * row_bytes);
        EXPECT_EQ(of_bound, want) << name_of(t.a) << name_of(t.b) << " " << rows << " of 150";
        EXPECT_EQ(of_size, want) << name_of(t.a) << name_of(t.b) << " " << rows;
      }
    }
}

TEST(MatmulGrid, LongSumsInParts) {
  for (const Types& t : kTypes)
    for (const bool transposed : {false, true}) {
      MatmulSpec s;
      s.m = 40, s.n = 42, s.k = 5000;
      s.a = t.a, s.b = t.b, s.c = t.c;
      s.transpose_a = transposed;
      s.bias = DType::F32;
      s.accumulate = true;
      expect_right_on_any_threads(make_case(s));
    }
}

TEST(MatmulGrid, WidePacksInWaves) {
  for (const DType t : {DType::BF16, DType::F16, DType::F32}) {
    MatmulSpec s;
    s.m = 9, s.n = 5000, s.k = 520;
    s.a = s.b = s.c = t;
    s.transpose_b = true;
    expect_right_on_any_threads(make_case(s));
    std::swap(s.m, s.n);
    s.transpose_a = true, s.transpose_b = false;
    expect_right_on_any_threads(make_case(s));
  }
}

// The gradient of a weight: rows of both operands are the depth. Where C is taller than wide, its
// transpose is what runs; more bands, panels and parts of K than threads.
TEST(MatmulGrid, DepthAlongRowsOfBoth) {
  constexpr std::int64_t kSizes[][4] = {
      {1, 96, 64, 80}, {1, 64, 96, 80}, {3, 160, 32, 65}, {1, 1024, 96, 32}, {1, 96, 64, 2100}};
  for (const Types& t : kTypes)
    for (const auto& [batch, m, n, k] : kSizes)
      for (const std::int64_t missing : {0, 7}) {
        MatmulSpec s;
        s.batch = batch, s.m = m, s.n = n, s.k = k;
        s.a = t.a, s.b = t.b, s.c = t.c;
        s.transpose_a = true;
        s.k_varies = batch == 1;
        Case c = make_case(s);
        if (s.k_varies) c.actual.k = k - missing;
        expect_right_on_any_threads(c);
      }
}

TEST(MatmulGrid, ManyBandsAndPartsOfDepth) {
  for (const Types& t : kTypes)
    for (const bool transposed : {false, true}) {
      MatmulSpec s;
      s.m = 1100, s.n = 100, s.k = 2080;
      s.a = t.a, s.b = t.b, s.c = t.c;
      s.transpose_b = transposed;
      s.bias = DType::F32;
      expect_right_on_any_threads(make_case(s));
    }
}

// Sums of parts of the depth would take as much room as C in f32: they go by columns instead.
TEST(MatmulGrid, WideResultsOfDeepProductsTakeLittleScratch) {
  constexpr std::int64_t kNarrow = 512, kWide = 16416;
  MatmulSpec s;
  s.k = 1056;
  s.a = s.b = s.c = DType::BF16;
  for (const bool tall : {false, true}) {
    s.m = tall ? kWide : kNarrow, s.n = tall ? kNarrow : kWide;
    s.transpose_a = tall;
    const Case c = make_case(s);
    FloatBuffer one = run(c, 1);
    for (std::int64_t i = 0; i < s.m; i += tall ? 1021 : 15)
      for (std::int64_t j = s.n - 1; j >= 0; j -= tall ? 15 : 1021)
        ASSERT_NO_FATAL_FAILURE(expect_right_at(c, one, 0, i, j));
    EXPECT_EQ(run(c, 2).copy(), one.copy());
    s.threads = 2;
    EXPECT_LE(MatmulGrid(s).scratch_bytes(), std::size_t{48} << 20);
    // A few columns more are no more to sum at once.
    MatmulSpec wider = s;
    (tall ? wider.m : wider.n) *= 3;
    EXPECT_LE(MatmulGrid(wider).scratch_bytes(), std::size_t{64} << 20);
  }
}

// More threads than processors, and than items of some waves.
TEST(MatmulGrid, SameBitsOnFarMoreThreads) {
  for (const Types& t : kTypes)
    for (const bool transposed : {false, true}) {
      MatmulSpec s;
      s.m = 330, s.n = 450, s.k = 1090;
      s.a = t.a, s.b = t.b, s.c = t.c;
      s.transpose_a = transposed, s.transpose_b = !transposed;
      s.bias = DType::F32;
      const Case c = make_case(s);
      FloatBuffer one = run(c, 1);
      for (const int threads : {16, 64}) EXPECT_EQ(run(c, threads).copy(), one.copy()) << threads;
    }
}

TEST(MatmulGrid, BatchesBiasAndAccumulation) {
  for (const Types& t : kTypes)
    for (const bool extra : {false, true}) {
      MatmulSpec s;
      s.batch = 11, s.m = 48, s.n = 40, s.k = 64;
      s.a = t.a, s.b = t.b, s.c = t.c;
      s.transpose_b = true;
      if (extra) s.bias = t.b, s.accumulate = true;
      expect_right_on_any_threads(make_case(s));
    }
}

TEST(MatmulGrid, PartialRowsDepthAndBatchIgnoreWhatLiesBehind) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Types& t : kTypes)
    for (const std::int64_t there : {0, 1, 37, 100}) {
      MatmulSpec s;
      s.m = 100, s.n = 66, s.k = 60;
      s.a = t.a, s.b = t.b, s.c = t.c;
      Case rows = make_case(s);
      rows.actual.m = there;
      std::fill(rows.a.begin() + there * s.k, rows.a.end(), nan);
      FloatBuffer got = run(rows, 2);
      expect_right(rows, got);

      s.k = 100, s.m = 50;
      s.k_varies = true, s.transpose_a = true;  // both operands are stored with K outermost
      Case depth = make_case(s);
      depth.actual.k = there;
      std::fill(depth.a.begin() + there * s.m, depth.a.end(), nan);
      std::fill(depth.b.begin() + there * s.n, depth.b.end(), nan);
      got = run(depth, 2);
      expect_right(depth, got);

      s.k_varies = false, s.transpose_a = false;
      s.batch = 100, s.m = 8, s.n = 10, s.k = 12;
      Case batch = make_case(s);
      batch.actual.batch = there;
      std::fill(batch.b.begin() + there * s.k * s.n, batch.b.end(), nan);
      got = run(batch, 2);
      expect_right(batch, got);
    }
}

TEST(MatmulGrid, NothingToSumGivesZerosOrTheBias) {
  for (const Types& t : kTypes)
    for (const bool bias : {false, true}) {
      MatmulSpec s;
      s.m = 5, s.n = 300, s.k = 0;
      s.a = t.a, s.b = t.b, s.c = t.c;
      if (bias) s.bias = t.c;
      expect_right_on_any_threads(make_case(s));
      s.m = 0, s.k = 7;
      run(make_case(s), 2);
      for (const bool accumulate : {false, true}) {  // no columns, and a depth in parts
        s.m = 20, s.n = 0, s.k = 5000;
        s.accumulate = accumulate;
        run(make_case(s), 2);
      }
    }
}

TEST(MatmulGrid, InfinityAndNanPropagateAsInTheSum) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const Types& t : kTypes)
    for (const std::int64_t depth : {70, 2500}) {  // one pass over K, and three
      MatmulSpec s;
      s.m = 40, s.n = 50, s.k = depth;
      s.a = t.a, s.b = t.b, s.c = t.c;
      Case c = make_case(s);
      c.a[3 * s.k + 5] = inf;  // row 3: infinite, or NaN where it meets 0
      c.b[5 * s.n + 7] = 0;
      c.a[9 * s.k + 1] = std::nan("");  // row 9: NaN
      c.b[2 * s.n + 11] = -inf;         // column 11
      FloatBuffer got = run(c, 2);
      for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
          double want = 0, squares = 0;
          for (std::int64_t k = 0; k < s.k; ++k) {
            want += c.a[i * s.k + k] * c.b[k * s.n + j];
            squares += want * want;
          }
          const double value = got.get(i * s.n + j);
          if (std::isnan(want))
            EXPECT_TRUE(std::isnan(value)) << i << "," << j;
          else if (std::isinf(want))
            EXPECT_EQ(value, want) << i << "," << j << " " << name_of(t.a);
          else
            EXPECT_NEAR(value, want, tolerance(s, want, squares)) << i << "," << j;
        }
    }
}

TEST(MatmulGrid, BroadcastOffsetsShareAnOperand) {
  MatmulSpec s;
  s.batch = 6, s.m = 20, s.n = 33, s.k = 40;
  s.a = s.b = s.c = DType::BF16;
  Case c = make_case(s);
  for (std::int64_t i = 0; i < 6; ++i) c.spec.b_offset.push_back(i % 2 * s.k * s.n);
  for (std::int64_t b = 2; b < 6; ++b)
    std::copy_n(c.b.begin() + b % 2 * s.k * s.n, s.k * s.n, c.b.begin() + b * s.k * s.n);
  expect_right_on_any_threads(c);
}

TEST(MatmulGrid, UsesTheBestUnitThere) {
  MatmulSpec s;
  s.m = s.n = s.k = 32;
  s.a = s.b = s.c = DType::BF16;
  const CpuFeatures& cpu = cpu_features();
  const std::string want = cpu.amx_bf16      ? "amx bf16"
                           : cpu.avx512_bf16 ? "our own bf16 vectors"
                                             : "our own f32 vectors";
  EXPECT_EQ(MatmulGrid(s).engine(), want) << describe(cpu);
}

}  // namespace
}  // namespace aloft::cpu

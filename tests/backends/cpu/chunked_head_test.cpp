// The chunked head where its rows need more than one chunk: the samples of the op are too small for
// that. Twice the rows must give the sum of both halves, each of which fits one chunk, and the same
// bits on any number of threads.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/float_buffer.h"
#include "ops/cross_entropy.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using test::FloatBuffer;

constexpr std::int64_t kClasses = 65536, kWidth = 4;

struct Sweep {
  float loss = 0;
  std::vector<double> dx, dweight;
};

std::vector<double> numbers(std::int64_t n, double scale, std::uint32_t seed) {
  std::vector<double> v(static_cast<std::size_t>(n));
  for (double& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = scale * (static_cast<double>(seed >> 8) / (1 << 23) - 1);
  }
  return v;
}

CallSpec sweep(DType type, std::int64_t rows, std::int64_t classes, std::int64_t width,
               int threads) {
  const TensorType one{DType::F32, {}}, tx{type, {rows, width}}, tw{type, {classes, width}};
  return {"linear_cross_entropy_sweep",
          to_attrs(CrossEntropyAttrs{-100, 0, "sum"}),
          {tx, tw, {DType::I32, {rows}}, one},
          {one, tx, tw},
          threads};
}

// Rows [first, first + rows) of one fixed problem.
Sweep run(DType type, std::int64_t first, std::int64_t rows, int threads) {
  omp_set_num_threads(threads);
  const std::vector<double> all = numbers((first + rows) * kWidth, 1, 1);
  FloatBuffer x(type, std::vector<double>(all.begin() + first * kWidth, all.end()));
  FloatBuffer weight(type, numbers(kClasses * kWidth, 1, 2));
  FloatBuffer dx(type, rows * kWidth), dweight(type, kClasses * kWidth);
  std::vector<std::int32_t> targets;
  for (std::int64_t row = first; row < first + rows; ++row)
    targets.push_back(static_cast<std::int32_t>(row * 7919 % kClasses));
  const CallSpec call = sweep(type, rows, kClasses, kWidth, threads);
  const auto prepared = choose_kernel(cpu_backend(), call).kernel->prepare(call);
  const Buffer scratch = cpu_device().allocate(prepared->scratch_bytes());
  Sweep s;
  float dloss = 0.5f;
  void* const in[] = {x.data(), weight.data(), targets.data(), &dloss};
  void* const out[] = {&s.loss, dx.data(), dweight.data()};
  prepared->run({in, out, scratch.address(), {}});
  for (std::int64_t i = 0; i < rows * kWidth; ++i) s.dx.push_back(dx.get(i));
  for (std::int64_t i = 0; i < kClasses * kWidth; ++i) s.dweight.push_back(dweight.get(i));
  return s;
}

void expect_sum(DType type, std::int64_t half) {
  // The whole is rounded once and so is each half, beside what f32 sums in another order give.
  const double roundoff = 2 * unit_roundoff(type) + tolerance_of(DType::F32).relative;
  const Sweep whole = run(type, 0, 2 * half, 2);
  const Sweep a = run(type, 0, half, 1), b = run(type, half, half, 1);
  EXPECT_NEAR(whole.loss, a.loss + b.loss, allowed_error(DType::F32, 1, whole.loss));
  for (std::size_t i = 0; i < a.dx.size(); ++i) {
    ASSERT_EQ(whole.dx[i], a.dx[i]) << i;
    ASSERT_EQ(whole.dx[a.dx.size() + i], b.dx[i]) << i;
  }
  for (std::size_t i = 0; i < a.dweight.size(); ++i)
    ASSERT_NEAR(whole.dweight[i], a.dweight[i] + b.dweight[i],
                roundoff * (std::abs(a.dweight[i]) + std::abs(b.dweight[i]) + 1e-3))
        << i;
  for (const int threads : {4, 16, 64}) {
    const Sweep again = run(type, 0, 2 * half, threads);
    EXPECT_EQ(again.loss, whole.loss) << threads;
    EXPECT_EQ(again.dx, whole.dx) << threads;
    EXPECT_EQ(again.dweight, whole.dweight) << threads;
  }
}

TEST(ChunkedHead, AddsItsChunksInF32) { expect_sum(DType::F32, 288); }
TEST(ChunkedHead, AddsItsChunksInBf16) { expect_sum(DType::BF16, 544); }

// A chunk of 128 MiB, fp32 sums of the weight's gradient for low types, what a product needs (f32
// in AVX2's lower strips most: 27.5 MiB; 15 with AVX-512), and two numbers a row.
TEST(ChunkedHead, ScratchDoesNotGrowWithTheRows) {
  constexpr std::int64_t kMiB = 1 << 20, kManyClasses = 50304, kWide = 768;
  const auto scratch = [](DType type, std::int64_t rows) {
    const CallSpec call = sweep(type, rows, kManyClasses, kWide, 2);
    return static_cast<std::int64_t>(
        choose_kernel(cpu_backend(), call).kernel->prepare(call)->scratch_bytes());
  };
  for (const DType type : {DType::F32, DType::F16, DType::BF16}) {
    const std::int64_t sums = type == DType::F32 ? 0 : kManyClasses * kWide * 4;
    for (const std::int64_t rows : {4096, 5000, 10007, 16384, 65536})
      EXPECT_LE(scratch(type, rows) - 16 * rows, 128 * kMiB + sums + 28 * kMiB)
          << name_of(type) << " " << rows;
  }
}

}  // namespace
}  // namespace aloft

#include "backends/cpu/matmul/skinny_matmul.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/parallel.h"
#include "backends/cpu/vectors/tiles.h"

// cpu_features() refuses a processor without AVX2: a scalar version would never run.
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/skinny_matmul.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// Memory is asked for what is read so many bytes ahead: a processor that finds out by itself begins
// anew with each group of lines, and reads at a third to a half of its rate.
constexpr std::size_t kAhead = 16384, kCacheLine = 64;

// Asks for the cache lines of `count` bytes from `at`, which may lie behind the end of everything.
HWY_INLINE void ask_for(std::uintptr_t at, std::size_t count) {
  for (std::size_t i = 0; i < count; i += kCacheLine)
    hwy::Prefetch(reinterpret_cast<const std::byte*>(at + i));
}

// sums[row * ld + j] = <a row, line j of B> for kLines lines of [n, k]; a has kRows rows of k.
template <int kRows, int kLines, class T>
HWY_INLINE void dot_lines(const float* a, const T* b, std::int64_t k, float* sums,
                          std::int64_t ld) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  FloatV acc[kRows][kLines];
  for (auto& row : acc)
    for (auto& v : row) v = hn::Zero(d);
  // The lines that are read side by side lie one behind the other.
  auto ahead = reinterpret_cast<std::uintptr_t>(b) + kAhead;
  const std::size_t step = kLines * lanes * sizeof(T);
  std::int64_t i = 0;
  for (; i + lanes <= k; i += lanes, ahead += step) {
    ask_for(ahead, step);
    FloatV line[kLines];
    for (int j = 0; j < kLines; ++j) line[j] = load(d, b + j * k + i);
    for (int r = 0; r < kRows; ++r) {
      const FloatV x = hn::LoadU(d, a + r * k + i);
      for (int j = 0; j < kLines; ++j) acc[r][j] = hn::MulAdd(x, line[j], acc[r][j]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < kLines; ++j) {
      float sum = hn::GetLane(hn::SumOfLanes(d, acc[r][j]));
      for (std::int64_t t = i; t < k; ++t) sum += a[r * k + t] * scalar::f32_of(b[j * k + t]);
      sums[r * ld + j] = sum;
    }
}

// sums for kVectors vectors of columns from column 0 of b, [k, n] with row stride n.
template <int kRows, int kVectors, class T>
HWY_INLINE void columns(const float* a, const T* b, std::int64_t k, std::int64_t n, float* sums,
                        std::int64_t ld) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  FloatV acc[kRows][kVectors];
  for (auto& row : acc)
    for (auto& v : row) v = hn::Zero(d);
  for (std::int64_t i = 0; i < k; ++i) {
    FloatV line[kVectors];
    for (int j = 0; j < kVectors; ++j) line[j] = load(d, b + i * n + j * lanes);
    for (int r = 0; r < kRows; ++r) {
      const FloatV x = hn::Set(d, a[r * k + i]);
      for (int j = 0; j < kVectors; ++j) acc[r][j] = hn::MulAdd(x, line[j], acc[r][j]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < kVectors; ++j) hn::StoreU(acc[r][j], d, sums + r * ld + j * lanes);
}

template <int kRows, class T>
HWY_INLINE void span_of_columns(const float* a, const T* b, std::int64_t k, std::int64_t n,
                                std::int64_t width, float* sums, std::int64_t ld) {
  constexpr int kVectors = kRows >= 4 ? 2 : 4;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  std::int64_t j = 0;
  for (; j + kVectors * lanes <= width; j += kVectors * lanes)
    columns<kRows, kVectors>(a, b + j, k, n, sums + j, ld);
  for (; j + lanes <= width; j += lanes) columns<kRows, 1>(a, b + j, k, n, sums + j, ld);
  for (; j < width; ++j)
    for (int r = 0; r < kRows; ++r) {
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += a[r * k + i] * scalar::f32_of(b[i * n + j]);
      sums[r * ld + j] = sum;
    }
}

// Columns [begin, begin + width) of the product of kRows rows. `b` is the whole of B.
template <int kRows, class T>
void span(const SkinnySpec& s, const float* a, const void* b_of, std::int64_t begin,
          std::int64_t width, float* sums, std::int64_t ld) {
  const T* b = static_cast<const T*>(b_of);
  if (!s.transpose_b) {
    span_of_columns<kRows>(a, b + begin, s.k, s.n, width, sums, ld);
    return;
  }
  constexpr int kLines = kRows == 1 || kRows == 8 ? 2 : 4;
  std::int64_t j = 0;
  for (; j + kLines <= width; j += kLines)
    dot_lines<kRows, kLines>(a, b + (begin + j) * s.k, s.k, sums + j, ld);
  for (; j < width; ++j) dot_lines<kRows, 1>(a, b + (begin + j) * s.k, s.k, sums + j, ld);
}

template <int kRows>
void span_as(const SkinnySpec& s, const float* a, const void* b, std::int64_t begin,
             std::int64_t width, float* sums, std::int64_t ld) {
  if (s.b == DType::F32)
    span<kRows, float>(s, a, b, begin, width, sums, ld);
  else if (s.b == DType::BF16)
    span<kRows, scalar::Bf16>(s, a, b, begin, width, sums, ld);
  else
    span<kRows, scalar::F16>(s, a, b, begin, width, sums, ld);
}

void skinny_span(const SkinnySpec& s, std::int64_t rows, const float* a, const void* b,
                 std::int64_t begin, std::int64_t width, float* sums, std::int64_t ld) {
  if (rows == 1)
    span_as<1>(s, a, b, begin, width, sums, ld);
  else if (rows == 2)
    span_as<2>(s, a, b, begin, width, sums, ld);
  else if (rows == 4)
    span_as<4>(s, a, b, begin, width, sums, ld);
  else
    span_as<8>(s, a, b, begin, width, sums, ld);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
HWY_EXPORT(skinny_span);

namespace {

// Columns at a time: of lines that lie side by side many, of lines behind each other few, so that
// even a product of 128 columns has a share for each thread.
constexpr std::int64_t kSpan = 128, kSpanOfLines = 16;

// Rows that the loops are written for.
std::int64_t padded_rows(std::int64_t m) { return m <= 2 ? m : m <= 4 ? 4 : kSkinnyRows; }

}  // namespace

std::size_t skinny_scratch_bytes(const SkinnySpec& s) {
  return padded_rows(s.m) * s.k * sizeof(float);
}

void run_skinny(const SkinnySpec& s, const SkinnyPointers& p) {
  if (s.m == 0) return;
  const std::int64_t rows = padded_rows(s.m);
  float* a = static_cast<float*>(p.scratch);
  widen(s.a, p.a, a, s.m * s.k);
  std::fill(a + s.m * s.k, a + rows * s.k, 0.0f);
  // Reading and widening an element of B is the cost, a few lanes at a time.
  const std::int64_t span = s.transpose_b ? kSpanOfLines : kSpan;
  parallel_for((s.n + span - 1) / span, span * s.k / 4, [&](std::int64_t first, std::int64_t last) {
    alignas(64) float sums[kSkinnyRows * kSpan];
    alignas(64) float bias[kSpan];
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = i * span, width = std::min(span, s.n - begin);
      HWY_DYNAMIC_DISPATCH(skinny_span)(s, rows, a, p.b, begin, width, sums, kSpan);
      if (s.bias) widen(*s.bias, at(p.bias, begin, *s.bias), bias, width);
      for (std::int64_t r = 0; r < s.m; ++r) {
        float* line = sums + r * kSpan;
        if (s.bias)
          for (std::int64_t j = 0; j < width; ++j) line[j] += bias[j];
        narrow(line, s.c, at(p.c, r * s.n + begin, s.c), width);
      }
    }
  });
}

}  // namespace aloft::cpu
#endif

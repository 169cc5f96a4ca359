// Small f32 matrix work on blocks in the first caches: products, transposes, and the rounding to
// bf16 planes that the matrix units read. Include from a file that Highway compiles once a target,
// after highway.h.
#if defined(ALOFT_CPU_BLOCKS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_BLOCKS_INL
#undef ALOFT_CPU_BLOCKS_INL
#else
#define ALOFT_CPU_BLOCKS_INL
#endif

#include <cstring>

#include "backends/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

inline constexpr std::int64_t kVectorLanes = HWY_MAX_BYTES / sizeof(float);

// A matrix read element by element: (i, l) is data[i * row + l * column].
struct Strided {
  const float* data;
  std::int64_t row, column;
};

template <int kRows, int kVectors>
HWY_INLINE void product_tile(std::int64_t k, Strided a, const float* HWY_RESTRICT b,
                             std::int64_t ldb, float* HWY_RESTRICT c, std::int64_t ldc, bool add) {
  const Floats d;
  constexpr std::int64_t kLanes = kVectorLanes;
  FloatV sums[kRows][kVectors];
  // Unrolled by order: at -O2 the compiler would keep `sums` in memory.
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = add ? hn::LoadU(d, c + r * ldc + v * kLanes) : hn::Zero(d);
  for (std::int64_t l = 0; l < k; ++l) {
    FloatV row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, b + l * ldb + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const FloatV x = hn::Set(d, a.data[r * a.row + l * a.column]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(x, row[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, c + r * ldc + v * kLanes);
}

template <int kVectors>
HWY_INLINE void product_columns(std::int64_t m, std::int64_t k, Strided a, const float* b,
                                std::int64_t ldb, float* c, std::int64_t ldc, bool add) {
  constexpr int kRows = 6;
  std::int64_t i = 0;
  const auto from = [&](std::int64_t r) { return Strided{a.data + r * a.row, a.row, a.column}; };
  for (; i + kRows <= m; i += kRows)
    product_tile<kRows, kVectors>(k, from(i), b, ldb, c + i * ldc, ldc, add);
  if (i + 4 <= m) {
    product_tile<4, kVectors>(k, from(i), b, ldb, c + i * ldc, ldc, add);
    i += 4;
  }
  for (; i < m; ++i) product_tile<1, kVectors>(k, from(i), b, ldb, c + i * ldc, ldc, add);
}

// C[m, n] = A[m, k] B[k, n], or C += A B; n a multiple of 16. Each element is summed in the order
// of k with fused multiply-adds: the same bits on every target.
HWY_INLINE void product(std::int64_t m, std::int64_t n, std::int64_t k, Strided a, const float* b,
                        std::int64_t ldb, float* c, std::int64_t ldc, bool add) {
  constexpr int kVectors = kVectorLanes == 16 ? 4 : 2;
  constexpr std::int64_t kStep = kVectors * kVectorLanes;
  std::int64_t j = 0;
  for (; j + kStep <= n; j += kStep)
    product_columns<kVectors>(m, k, a, b + j, ldb, c + j, ldc, add);
  for (; j < n; j += kVectorLanes) product_columns<1>(m, k, a, b + j, ldb, c + j, ldc, add);
}

// dst[c * ldd + r] = src[r * lds + c].
HWY_INLINE void transpose_block(const float* src, std::int64_t lds, std::int64_t rows,
                                std::int64_t cols, float* dst, std::int64_t ldd) {
  std::int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::Full128<float> d;
  const hn::Full128<double> d64;
  for (; r + 4 <= rows; r += 4) {
    std::int64_t c = 0;
    for (; c + 4 <= cols; c += 4) {
      const float* s = src + r * lds + c;
      const auto a = hn::LoadU(d, s), b = hn::LoadU(d, s + lds);
      const auto e = hn::LoadU(d, s + 2 * lds), f = hn::LoadU(d, s + 3 * lds);
      const auto ab = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
      const auto ef = hn::BitCast(d64, hn::InterleaveLower(d, e, f));
      const auto ab2 = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
      const auto ef2 = hn::BitCast(d64, hn::InterleaveUpper(d, e, f));
      float* t = dst + c * ldd + r;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab, ef)), d, t);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab, ef)), d, t + ldd);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab2, ef2)), d, t + 2 * ldd);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab2, ef2)), d, t + 3 * ldd);
    }
    for (; c < cols; ++c)
      for (std::int64_t i = 0; i < 4; ++i) dst[c * ldd + r + i] = src[(r + i) * lds + c];
  }
#endif
  for (; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) dst[c * ldd + r] = src[r * lds + c];
}

// ---- f32 as one bf16, or as the sum of two ----

using Words = hn::RebindToUnsigned<Floats>;
using WordV = hn::Vec<Words>;

// The bits of x rounded to bf16, in the upper halves; the lower halves are zero.
HWY_INLINE WordV rounded_bits(FloatV x) {
  const Words d;
  const WordV u = hn::BitCast(d, x);
  const WordV odd = hn::And(hn::ShiftRight<16>(u), hn::Set(d, 1u));
  const WordV near = hn::Add(u, hn::Add(odd, hn::Set(d, 0x7fffu)));
  const auto is_nan = hn::RebindMask(d, hn::IsNaN(x));
  return hn::And(hn::IfThenElse(is_nan, hn::Set(d, 0x7fc00000u), near), hn::Set(d, 0xffff0000u));
}
// What rounding left, as bf16 bits likewise; 0 where x is not finite.
HWY_INLINE WordV rest_bits(FloatV x, WordV rounded) {
  const Floats d;
  const FloatV rest = hn::Sub(x, hn::BitCast(d, rounded));
  const auto keeps = hn::And(hn::IsFinite(x), hn::IsFinite(rest));
  return rounded_bits(hn::IfThenElseZero(keeps, rest));
}

// Two neighbouring rows as interleaved pairs: `even` in the lower halves.
HWY_INLINE void store_pairs(WordV even, WordV odd, std::uint16_t* p) {
  const Words d;
  hn::StoreU(hn::Or(hn::ShiftRight<16>(even), odd), d, reinterpret_cast<std::uint32_t*>(p));
}
HWY_INLINE void store_halves(WordV v, std::uint16_t* p) {
  const hn::Rebind<std::uint16_t, Floats> d16;
  hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(v)), d16, p);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

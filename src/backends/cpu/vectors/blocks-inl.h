// Small f32 matrix work on blocks in the first caches: products and transposes. Include from a file
// that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_BLOCKS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_BLOCKS_INL
#undef ALOFT_CPU_BLOCKS_INL
#else
#define ALOFT_CPU_BLOCKS_INL
#endif

#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

inline constexpr std::int64_t kVectorLanes = HWY_MAX_BYTES / sizeof(float);

// A matrix read element by element: (i, l) is data[i * row + l * column], one of the two strides 1.
struct Strided {
  const float* data;
  std::int64_t row, column;
  HWY_INLINE Strided from(std::int64_t r) const { return {data + r * row, row, column}; }
};

// kAdjacent: the rows of A lie side by side, so that its elements need no addresses of their own.
template <int kRows, int kVectors, bool kAdjacent>
HWY_INLINE void product_tile(std::int64_t k, Strided a, const float* HWY_RESTRICT b,
                             std::int64_t ldb, float* HWY_RESTRICT c, std::int64_t ldc, bool add) {
  const Floats d;
  constexpr std::int64_t kLanes = kVectorLanes;
  FloatV sums[kRows][kVectors];
  // Unrolled by order: at -O2 the compiler would keep `sums` in memory.
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = add ? hn::LoadU(d, c + r * ldc + v * kLanes) : hn::Zero(d);
  // Four rows a base: base + {0, 1, 2, 3} row.
  const std::int64_t row = kAdjacent ? 1 : a.row, triple = 3 * row;
  const float *a0 = a.data, *a4 = a0 + 4 * row, *a8 = a4 + 4 * row, *a12 = a8 + 4 * row;
  const auto element = [&](int r) HWY_ATTR {
    if constexpr (kAdjacent) return a0[r];
    const float* base = r < 4 ? a0 : r < 8 ? a4 : r < 12 ? a8 : a12;
    return r % 4 == 3 ? base[triple] : base[r % 4 * row];
  };
  const std::int64_t step = kAdjacent ? a.column : 1;
  for (std::int64_t l = 0; l < k; ++l, b += ldb) {
    FloatV line[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) line[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const FloatV x = hn::Set(d, element(r));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(x, line[v], sums[r][v]);
    }
    a0 += step, a4 += step, a8 += step, a12 += step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, c + r * ldc + v * kLanes);
}

// Enough sums for the latency of both multipliers, and few loads for each.
template <int kVectors>
inline constexpr int kTileRows = kVectorLanes == 16 ? (kVectors == 1   ? 16
                                                       : kVectors == 4 ? 6
                                                                       : 8)
                                                    : (kVectors == 1 ? 8 : 4);

template <int kVectors, bool kAdjacent>
void product_columns(std::int64_t m, std::int64_t k, Strided a, const float* b, std::int64_t ldb,
                     float* c, std::int64_t ldc, bool add) {
  constexpr int kRows = kTileRows<kVectors>;
  std::int64_t i = 0;
  for (; i + kRows <= m; i += kRows)
    product_tile<kRows, kVectors, kAdjacent>(k, a.from(i), b, ldb, c + i * ldc, ldc, add);
  if constexpr (kRows > 8)
    for (; i + 8 <= m; i += 8)
      product_tile<8, kVectors, kAdjacent>(k, a.from(i), b, ldb, c + i * ldc, ldc, add);
  if constexpr (kRows > 4)
    for (; i + 4 <= m; i += 4)
      product_tile<4, kVectors, kAdjacent>(k, a.from(i), b, ldb, c + i * ldc, ldc, add);
  for (; i < m; ++i)
    product_tile<1, kVectors, kAdjacent>(k, a.from(i), b, ldb, c + i * ldc, ldc, add);
}

template <bool kAdjacent>
HWY_INLINE void product_of(std::int64_t m, std::int64_t n, std::int64_t k, Strided a,
                           const float* b, std::int64_t ldb, float* c, std::int64_t ldc, bool add) {
  std::int64_t vectors = n / kVectorLanes;
  if constexpr (kVectorLanes == 16) {
    for (; vectors >= 4; vectors -= 4, b += 4 * kVectorLanes, c += 4 * kVectorLanes)
      product_columns<4, kAdjacent>(m, k, a, b, ldb, c, ldc, add);
    if (vectors == 3) return product_columns<3, kAdjacent>(m, k, a, b, ldb, c, ldc, add);
  }
  for (; vectors >= 2; vectors -= 2, b += 2 * kVectorLanes, c += 2 * kVectorLanes)
    product_columns<2, kAdjacent>(m, k, a, b, ldb, c, ldc, add);
  if (vectors) product_columns<1, kAdjacent>(m, k, a, b, ldb, c, ldc, add);
}

// C[m, n] = A[m, k] B[k, n], or C += A B; n a multiple of the lanes. Each element is summed in the
// order of k with fused multiply-adds: the same bits on every target.
inline void product(std::int64_t m, std::int64_t n, std::int64_t k, Strided a, const float* b,
                    std::int64_t ldb, float* c, std::int64_t ldc, bool add) {
  if (a.row == 1)
    product_of<true>(m, n, k, a, b, ldb, c, ldc, add);
  else
    product_of<false>(m, n, k, a, b, ldb, c, ldc, add);
}

// Block b of the result is four elements from row 4 b on.
template <class D>
HWY_INLINE hn::Vec<D> quads_of(D to, const float* p, std::int64_t ld) {
  const hn::Full128<float> d;
  const auto quad = [&](int b) HWY_ATTR { return hn::LoadU(d, p + 4 * b * ld); };
  if constexpr (hn::MaxLanes(D()) == 16) {
    const hn::Half<D> dh;
    return hn::Combine(to, hn::Combine(dh, quad(3), quad(2)), hn::Combine(dh, quad(1), quad(0)));
  } else {
    return hn::Combine(to, quad(1), quad(0));
  }
}

// dst[c * ldd + r] = src[r * lds + c].
inline void transpose_block(const float* src, std::int64_t lds, std::int64_t rows,
                            std::int64_t cols, float* dst, std::int64_t ldd) {
  const Floats d;
  const hn::Repartition<double, Floats> d64;
  std::int64_t r = 0;
  for (; r + kVectorLanes <= rows; r += kVectorLanes) {
    std::int64_t c = 0;
    for (; c + 4 <= cols; c += 4) {
      const float* s = src + r * lds + c;
      const FloatV a = quads_of(d, s, lds), b = quads_of(d, s + lds, lds);
      const FloatV e = quads_of(d, s + 2 * lds, lds), f = quads_of(d, s + 3 * lds, lds);
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
      for (std::int64_t i = 0; i < kVectorLanes; ++i) dst[c * ldd + r + i] = src[(r + i) * lds + c];
  }
  for (; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) dst[c * ldd + r] = src[r * lds + c];
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

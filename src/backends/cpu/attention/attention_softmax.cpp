#include "backends/cpu/attention/attention_softmax.h"

#include "base/error.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/attention/attention_heads.h"
#include "backends/cpu/vectors/low_lanes.h"

#define ALOFT_VECTORS \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,f16c,fma")))

namespace aloft::cpu {
namespace {

constexpr float kLog2e = 1.44269504f;
constexpr float kLn2 = 0.693147181f;

// 2^x. A polynomial of the fraction in [0, 1) (minimax, exact at 0), within 2 units in the last
// place; below -126, where f32 would become denormal, 0; NaN stays NaN. Lanes outside `mask` are 0.
ALOFT_VECTORS inline __m512 exp2_of(__m512 x, __mmask16 mask = 0xffff) {
  const __m512 r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(0.001867130515165627f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.009017029777169228f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.05579991266131401f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.24016444385051727f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.6931512951850891f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  const __mmask16 kept = _mm512_mask_cmp_ps_mask(mask, x, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(kept, p, x);
}

// ln of positive x: 2 artanh((m - 1) / (m + 1)) + e ln 2 with m in [3/4, 3/2).
ALOFT_VECTORS inline __m512 log_of(__m512 x) {
  const __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 e = _mm512_mask_add_ps(_mm512_getexp_ps(x), _mm512_cmp_ps_mask(m, one, _CMP_LT_OQ),
                                      _mm512_getexp_ps(x), one);
  const __m512 z = _mm512_div_ps(_mm512_sub_ps(m, one), _mm512_add_ps(m, one));
  const __m512 zz = _mm512_mul_ps(z, z);
  __m512 p = _mm512_set1_ps(2.0f / 9);
  p = _mm512_fmadd_ps(p, zz, _mm512_set1_ps(2.0f / 7));
  p = _mm512_fmadd_ps(p, zz, _mm512_set1_ps(2.0f / 5));
  p = _mm512_fmadd_ps(p, zz, _mm512_set1_ps(2.0f / 3));
  p = _mm512_fmadd_ps(p, zz, _mm512_set1_ps(2.0f));
  return _mm512_fmadd_ps(e, _mm512_set1_ps(kLn2), _mm512_mul_ps(p, z));
}

// tanh within 2^-23 of 1: what is near 0 has no better relative error, which scores do not need.
ALOFT_VECTORS inline __m512 tanh_of(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f), two = _mm512_set1_ps(2.0f);
  const __m512 e = exp2_of(_mm512_mul_ps(x, _mm512_set1_ps(2 * kLog2e)));
  return _mm512_sub_ps(one, _mm512_div_ps(two, _mm512_add_ps(one, e)));
}

// ---- 32 f32 as 32 bf16, and what rounding left ----

ALOFT_VECTORS inline __m512i rounded(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}
ALOFT_VECTORS inline __m512 rest(__m512 x, __m256i bits) {
  const __m512 near = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  const __m512 left = _mm512_sub_ps(x, near);
  // Infinities and NaN are in the first plane alone.
  constexpr int kNotFinite = 0x01 | 0x80 | 0x08 | 0x10;
  return _mm512_maskz_mov_ps(_knot_mask16(_mm512_fpclass_ps_mask(left, kNotFinite)), left);
}
ALOFT_VECTORS inline __m512i rest_of(__m512 low, __m512 high, __m512i bits) {
  return rounded(rest(low, _mm512_castsi512_si256(bits)),
                 rest(high, _mm512_extracti64x4_epi64(bits, 1)));
}

// ---- forward ----

ALOFT_VECTORS inline __mmask16 below(std::int64_t n) {
  return n >= 16 ? 0xffff : n <= 0 ? 0 : static_cast<__mmask16>((1u << n) - 1);
}

ALOFT_VECTORS inline float largest(const float* s, std::int64_t n) {
  const __m512 none = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 a = none, b = none;
  std::int64_t j = 0;
  for (; j + 32 <= n; j += 32) {
    a = _mm512_max_ps(a, _mm512_loadu_ps(s + j));
    b = _mm512_max_ps(b, _mm512_loadu_ps(s + j + 16));
  }
  if (j < n) {
    a = _mm512_mask_max_ps(a, below(n - j), a, _mm512_loadu_ps(s + j));
    b = _mm512_mask_max_ps(b, below(n - j - 16), b, _mm512_loadu_ps(s + j + 16));
  }
  return _mm512_reduce_max_ps(_mm512_max_ps(a, b));
}

// Which keys of a span a row sees: [from, until).
struct SeenKeys {
  std::int64_t from = 0, until = 0;
};
inline SeenKeys seen_keys(const WeightsBlock& x, std::int64_t r) {
  SeenKeys seen;
  seen.until = std::clamp<std::int64_t>(x.seen + r, 0, x.keys);
  if (x.window > 0) seen.from = std::clamp<std::int64_t>(x.seen + r - x.window, 0, seen.until);
  return seen;
}

// One row: weights, and their sum.
template <int kPlanes>
ALOFT_VECTORS inline float weights_row(const WeightsBlock& x, std::int64_t r, SeenKeys seen,
                                       float row_top) {
  const std::int64_t n = seen.until;
  const float* s = x.scores + r * x.ld;
  std::uint16_t* w = x.weights + r * x.ldw;
  const __m512 factor = _mm512_set1_ps(x.scale * kLog2e), top = _mm512_set1_ps(row_top);
  __m512 a = _mm512_setzero_ps(), b = a;
  const auto pair = [&](std::int64_t j, __mmask16 left, __mmask16 right) ALOFT_VECTORS {
    const __m512 x0 = _mm512_sub_ps(_mm512_loadu_ps(s + j), top);
    const __m512 x1 = _mm512_sub_ps(_mm512_loadu_ps(s + j + 16), top);
    const __m512 p = exp2_of(_mm512_mul_ps(x0, factor), left);
    const __m512 q = exp2_of(_mm512_mul_ps(x1, factor), right);
    a = _mm512_add_ps(a, p);
    b = _mm512_add_ps(b, q);
    const __m512i bits = rounded(p, q);
    _mm512_storeu_si512(w + j, bits);
    if constexpr (kPlanes == 2) _mm512_storeu_si512(w + j + x.plane, rest_of(p, q, bits));
  };
  const auto zeros = [&](std::int64_t j) ALOFT_VECTORS {
    for (int p = 0; p < kPlanes; ++p)
      _mm512_storeu_si512(w + j + p * x.plane, _mm512_setzero_si512());
  };
  std::int64_t j = 0;
  for (; j + 32 <= seen.from; j += 32) zeros(j);
  if (j < seen.from) {
    const auto both = [&](std::int64_t at) ALOFT_VECTORS {
      return static_cast<__mmask16>(below(n - at) & ~below(seen.from - at));
    };
    pair(j, both(j), both(j + 16));
    j += 32;
  }
  for (; j + 32 <= n; j += 32) pair(j, 0xffff, 0xffff);
  if (j < n) {
    pair(j, below(n - j), below(n - j - 16));
    j += 32;
  }
  for (; j < x.depth; j += 32) zeros(j);
  return _mm512_reduce_add_ps(_mm512_add_ps(a, b));
}

template <int kPlanes>
ALOFT_VECTORS void weights_of(const WeightsBlock& x) {
  alignas(64) float tops[32], sums[32] = {};
  std::copy_n(x.top, 32, tops);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const SeenKeys seen = seen_keys(x, r);
    if (seen.until > seen.from)
      tops[r] = std::max(tops[r], largest(x.scores + r * x.ld + seen.from, seen.until - seen.from));
    // A query that has seen nothing yet has no largest score: its weights are 0 all the same.
    if (x.window > 0) tops[r] = std::max(tops[r], std::numeric_limits<float>::lowest());
  }
  for (std::int64_t r = 0; r < x.rows; ++r)
    sums[r] = weights_row<kPlanes>(x, r, seen_keys(x, r), tops[r]);
  for (int j = 0; j < 32; j += 16) {
    const __m512 top = _mm512_load_ps(tops + j);
    const __m512 alpha = exp2_of(_mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(x.top + j), top),
                                               _mm512_set1_ps(x.scale * kLog2e)));
    _mm512_storeu_ps(x.alpha + j, alpha);
    _mm512_storeu_ps(x.sum + j,
                     _mm512_fmadd_ps(_mm512_loadu_ps(x.sum + j), alpha, _mm512_load_ps(sums + j)));
    _mm512_storeu_ps(x.top + j, top);
  }
}

// ---- backward ----

ALOFT_VECTORS inline __mmask16 is_far(__m512 x) {
  const __m512 size = _mm512_abs_ps(x);
  const __m512 inf = _mm512_set1_ps(std::numeric_limits<float>::infinity());
  return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(size, _mm512_set1_ps(kFarScore), _CMP_GE_OQ),
                                 size, inf, _CMP_LT_OQ);
}

// A row of 32 queries: the two vectors of P and of dS.
struct CotangentRow {
  __m512 p[2], ds[2];
};

enum class Hides { Nothing, Later, LaterAndWindow };

template <Hides kHides, bool kAnyFar>
ALOFT_VECTORS inline CotangentRow cotangent_row(const CotangentsBlock& x, std::int64_t r) {
  CotangentRow row;
  if (r >= x.keys) {
    for (int v = 0; v < 2; ++v) row.p[v] = row.ds[v] = _mm512_setzero_ps();
    return row;
  }
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    const std::int64_t at = r * 32 + 16 * v;
    __mmask16 seen = 0xffff;
    constexpr bool kMasked = kHides != Hides::Nothing;
    if constexpr (kMasked) seen = static_cast<__mmask16>(~below(x.first + r - 16 * v));
    if constexpr (kHides == Hides::LaterAndWindow)
      seen = static_cast<__mmask16>(seen & below(x.first + r + x.window - 16 * v));
    const __m512 lse = _mm512_loadu_ps(x.lse + 16 * v), scale = _mm512_set1_ps(x.scale);
    const __m512 score = _mm512_loadu_ps(x.scores + at);
    __m512 e = _mm512_fmsub_ps(score, scale, lse);
    if constexpr (kAnyFar) e = _mm512_mask_sub_ps(e, is_far(lse), _mm512_mul_ps(score, scale), lse);
    row.p[v] = exp2_of(_mm512_mul_ps(e, _mm512_set1_ps(kLog2e)), seen);
    const __m512 d = _mm512_sub_ps(_mm512_loadu_ps(x.dp + at), _mm512_loadu_ps(x.delta + 16 * v));
    row.ds[v] = kMasked ? _mm512_maskz_mul_ps(seen, row.p[v], d) : _mm512_mul_ps(row.p[v], d);
  }
  return row;
}

// Two rows of 32 as pairs.
ALOFT_VECTORS inline void store_pairs(__m512i even, __m512i odd, std::uint16_t* to) {
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                       39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(even, low, odd));
  _mm512_storeu_si512(to + 32, _mm512_permutex2var_epi16(even, high, odd));
}

template <int kPlanes>
ALOFT_VECTORS inline void store_cotangents(const CotangentsBlock& x, std::int64_t r,
                                           const CotangentRow& even, const CotangentRow& odd) {
  std::uint16_t* p = x.p + r * x.ldw;
  std::uint16_t* ds = x.ds + r * x.ldw;
  const __m512i p0 = rounded(even.p[0], even.p[1]), p1 = rounded(odd.p[0], odd.p[1]);
  const __m512i d0 = rounded(even.ds[0], even.ds[1]), d1 = rounded(odd.ds[0], odd.ds[1]);
  _mm512_storeu_si512(p, p0);
  _mm512_storeu_si512(p + x.ldw, p1);
  _mm512_storeu_si512(ds, d0);
  _mm512_storeu_si512(ds + x.ldw, d1);
  store_pairs(d0, d1, x.ds_panel + r * 32);
  if constexpr (kPlanes == 2) {
    _mm512_storeu_si512(p + x.plane, rest_of(even.p[0], even.p[1], p0));
    _mm512_storeu_si512(p + x.plane + x.ldw, rest_of(odd.p[0], odd.p[1], p1));
    const __m512i e0 = rest_of(even.ds[0], even.ds[1], d0), e1 = rest_of(odd.ds[0], odd.ds[1], d1);
    _mm512_storeu_si512(ds + x.plane, e0);
    _mm512_storeu_si512(ds + x.plane + x.ldw, e1);
    store_pairs(e0, e1, x.ds_panel + x.panel_plane + r * 32);
  }
}

template <int kPlanes, bool kAnyFar, Hides kHides>
ALOFT_VECTORS inline void cotangent_rows(const CotangentsBlock& x, std::int64_t from,
                                         std::int64_t until) {
  for (std::int64_t r = from; r < until; r += 2)
    store_cotangents<kPlanes>(x, r, cotangent_row<kHides, kAnyFar>(x, r),
                              cotangent_row<kHides, kAnyFar>(x, r + 1));
}

template <int kPlanes, bool kAnyFar>
ALOFT_VECTORS void cotangents_of(const CotangentsBlock& x) {
  const std::int64_t rows = (x.keys + 31) / 32 * 32;
  if (x.window > 0) return cotangent_rows<kPlanes, kAnyFar, Hides::LaterAndWindow>(x, 0, rows);
  // Rows that every query sees come first.
  const std::int64_t plain = std::clamp<std::int64_t>(1 - x.first, 0, x.keys) / 2 * 2;
  cotangent_rows<kPlanes, kAnyFar, Hides::Nothing>(x, 0, plain);
  cotangent_rows<kPlanes, kAnyFar, Hides::Later>(x, plain, rows);
}

// ---- results ----

// v[i] becomes column i of the 16 x 16 that the 16 vectors are.
ALOFT_VECTORS inline void transpose(__m512 (&v)[16]) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(v[2 * i], v[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(v[2 * i], v[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])));
    v[i + 1] =
        _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])));
    v[i + 2] = _mm512_castpd_ps(
        _mm512_unpacklo_pd(_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])));
    v[i + 3] = _mm512_castpd_ps(
        _mm512_unpackhi_pd(_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(v[i], v[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(v[i], v[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    v[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
    v[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    v[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

}  // namespace

ALOFT_VECTORS void bf16_attention_bend(const BendBlock& x) {
  const __m512 inner = _mm512_set1_ps(x.scale / x.cap), outer = _mm512_set1_ps(x.cap);
  const __m512 one = _mm512_set1_ps(1.0f);
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t j = 0; j < x.columns; j += 16) {
      float* s = x.scores + r * x.ld + j;
      const __m512 t = tanh_of(_mm512_mul_ps(_mm512_loadu_ps(s), inner));
      _mm512_storeu_ps(s, _mm512_mul_ps(t, outer));
      if (!x.dp) continue;
      float* dp = x.dp + r * x.ld + j;
      const __m512 d = _mm512_sub_ps(_mm512_loadu_ps(dp), _mm512_loadu_ps(x.delta + j));
      _mm512_storeu_ps(dp, _mm512_mul_ps(d, _mm512_fnmadd_ps(t, t, one)));
    }
}

void bf16_attention_weights(const WeightsBlock& x) {
  if (x.planes == 2)
    weights_of<2>(x);
  else
    weights_of<1>(x);
}

ALOFT_VECTORS void bf16_attention_log_sums(const float* top, const float* sum, float scale,
                                           float* to, float* lse) {
  for (int j = 0; j < 32; j += 16) {
    const __m512 s = _mm512_loadu_ps(sum + j);
    _mm512_storeu_ps(to + j, _mm512_div_ps(_mm512_set1_ps(1.0f), s));
    const __m512 t = _mm512_loadu_ps(top + j), factor = _mm512_set1_ps(scale);
    const __m512 product = _mm512_mul_ps(t, factor), log = log_of(s);
    // A far product is rounded alone, as the backward pass rounds it.
    const __m512 fused = _mm512_fmadd_ps(t, factor, log);
    _mm512_storeu_ps(lse + j, _mm512_mask_add_ps(fused, is_far(product), product, log));
  }
}

ALOFT_VECTORS void bf16_attention_cotangents(const CotangentsBlock& x) {
  const bool far = (is_far(_mm512_loadu_ps(x.lse)) | is_far(_mm512_loadu_ps(x.lse + 16))) != 0;
  if (x.planes == 2)
    far ? cotangents_of<2, true>(x) : cotangents_of<2, false>(x);
  else
    far ? cotangents_of<1, true>(x) : cotangents_of<1, false>(x);
}

ALOFT_VECTORS void bf16_attention_store(const RowsOut& x) {
  for (std::int64_t r = 0; r < x.count; ++r) {
    const float* from = x.from + r * x.ld;
    auto* to = static_cast<std::uint16_t*>(x.to) + r * x.stride;
    const __m512 factor = _mm512_set1_ps(x.factors[r * x.step]);
    for (std::int64_t j = 0; j < x.width; j += 16)
      store_lanes(to + j, below(x.width - j), _mm512_mul_ps(_mm512_loadu_ps(from + j), factor),
                  x.type);
  }
}

ALOFT_VECTORS void bf16_attention_store_turned(const RowsOut& x) {
  auto* to = static_cast<std::uint16_t*>(x.to);
  const __m512 factor = _mm512_set1_ps(x.factors[0]);
  for (std::int64_t q = 0; q < x.count; q += 16)
    for (std::int64_t w = 0; w < x.width; w += 16) {
      __m512 v[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        v[i] = w + i < x.width ? _mm512_loadu_ps(x.from + (w + i) * 32 + q) : _mm512_setzero_ps();
      transpose(v);
      const std::int64_t rows = std::min<std::int64_t>(16, x.count - q);
      for (std::int64_t i = 0; i < rows; ++i)
        store_lanes(to + (q + i) * x.stride + w, below(x.width - w), _mm512_mul_ps(v[i], factor),
                    x.type);
    }
}

ALOFT_VECTORS void bf16_attention_dots(const void* x, std::int64_t x_row, const void* y,
                                       std::int64_t y_row, DType type, std::int64_t rows,
                                       std::int64_t width, float* delta) {
  for (std::int64_t t = 0; t < rows; ++t) {
    const auto* a = static_cast<const std::uint16_t*>(x) + t * x_row;
    const auto* b = static_cast<const std::uint16_t*>(y) + t * y_row;
    __m512 sum = _mm512_setzero_ps();
    for (std::int64_t j = 0; j < width; j += 16)
      sum = _mm512_fmadd_ps(load_lanes(a + j, below(width - j), type),
                            load_lanes(b + j, below(width - j), type), sum);
    delta[t] = _mm512_reduce_add_ps(sum);
  }
}

}  // namespace aloft::cpu

#else

namespace aloft::cpu {
namespace {
[[noreturn]] void refuse() {
  ensure(false, "no products of bf16 on this processor");
  __builtin_unreachable();
}
}  // namespace
void bf16_attention_bend(const BendBlock&) { refuse(); }
void bf16_attention_weights(const WeightsBlock&) { refuse(); }
void bf16_attention_log_sums(const float*, const float*, float, float*, float*) { refuse(); }
void bf16_attention_cotangents(const CotangentsBlock&) { refuse(); }
void bf16_attention_store(const RowsOut&) { refuse(); }
void bf16_attention_store_turned(const RowsOut&) { refuse(); }
void bf16_attention_dots(const void*, std::int64_t, const void*, std::int64_t, DType, std::int64_t,
                         std::int64_t, float*) {
  refuse();
}
}  // namespace aloft::cpu

#endif

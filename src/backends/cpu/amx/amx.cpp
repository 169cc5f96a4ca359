// The matrix-tile kernel, a block of C at a time (amx_blocks-inl.h).
#include "backends/cpu/amx/amx.h"

#include "base/error.h"

#if defined(__x86_64__)

#include "backends/cpu/amx/amx_blocks-inl.h"
#include "backends/cpu/amx/amx_repair.h"

namespace aloft::cpu {
namespace {

// Kept in memory that the compiler cannot know unused: the intrinsic tells it of the first bytes
// only.
struct BlockConfigs {
  TileConfig of_rows[kBlock + 1];
  // `rows` of a block, 1..32: the tiles of the lower half get what exceeds 16 (at least one row,
  // because a tile of none is not legal; the caller keeps it from being read or stored).
  BlockConfigs() {
    for (std::int64_t rows = 1; rows <= kBlock; ++rows) {
      const auto upper = static_cast<std::uint8_t>(rows < kRows ? rows : kRows);
      const auto lower = static_cast<std::uint8_t>(rows > kRows ? rows - kRows : 1);
      for (int t = 0; t < 8; ++t)
        of_rows[rows].rows[t] = t == 2 || t == 3 || t == 5 ? lower : t >= 6 ? kRows : upper;
    }
  }
};
const BlockConfigs kConfigs;

ALOFT_AMX void configure(std::int64_t rows) { _tile_loadconfig(&kConfigs.of_rows[rows]); }
ALOFT_AMX void release() { _tile_release(); }

constexpr std::int64_t kStepB = kAmxDepth * kAmxPanel;

template <bool kLower, const auto& kTerms>
ALOFT_AMX inline void sum_planes(const AmxTile& t, const std::uint16_t* a, const std::uint16_t* b) {
  NothingElse nothing;
  for (std::int64_t k = 0; k < t.k; k += kAmxDepth, b += kStepB)
    step_planes<kLower, kTerms>(a + k, b, {t.lda, t.a_plane, t.b_plane}, nothing);
}

template <bool kLower>
ALOFT_AMX inline void sum_over_k(const AmxTile& t, const std::uint16_t* a, const std::uint16_t* b) {
  if (t.products == 6) return sum_planes<kLower, kTerms6>(t, a, b);
  if (t.products == 4) return sum_planes<kLower, kTerms4>(t, a, b);
  if (t.products == 3) return sum_planes<kLower, kTerms3>(t, a, b);
  sum_planes<kLower, kTerms1>(t, a, b);
}

// One bit a column of the block at `col` that C has.
inline std::uint32_t columns_of(const AmxTile& t, std::int64_t col) {
  return t.n - col < kBlock ? (1u << (t.n - col)) - 1 : ~0u;
}

ALOFT_AMX inline void store_half(const AmxTile& t, std::ptrdiff_t at, __mmask16 mask, __m512 sum,
                                 std::int64_t col) {
  if (t.bias) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, t.bias + col));
  if (t.c_type == DType::F32) {
    float* c = static_cast<float*>(t.c) + at;
    if (t.accumulate) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, c));
    _mm512_mask_storeu_ps(c, mask, sum);
    return;
  }
  auto* c = static_cast<std::uint16_t*>(t.c) + at;
  if (t.c_type == DType::BF16) {
    if (t.accumulate)
      sum = _mm512_add_ps(sum, _mm512_castsi512_ps(_mm512_slli_epi32(
                                   _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, c)), 16)));
    _mm256_mask_storeu_epi16(c, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum)));
  } else {
    if (t.accumulate) sum = _mm512_add_ps(sum, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, c)));
    _mm256_mask_storeu_epi16(c, mask, _mm512_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
  }
}

ALOFT_AMX inline void store_block(const AmxTile& t, const float* sums, std::int64_t row,
                                  std::int64_t rows, std::int64_t col) {
  const std::int64_t cols = t.n - col < kBlock ? t.n - col : kBlock;
  const std::uint32_t mask = columns_of(t, col);
  const bool plain = cols == kBlock && t.c_type == DType::BF16 && !t.bias && !t.accumulate;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::ptrdiff_t at = (row + r) * t.ldc + col;
    const __m512 left = _mm512_load_ps(sums + r * kBlock);
    const __m512 right = _mm512_load_ps(sums + r * kBlock + 16);
    if (plain) {
      _mm512_storeu_si512(static_cast<std::uint16_t*>(t.c) + at,
                          reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(right, left)));
      continue;
    }
    store_half(t, at, static_cast<__mmask16>(mask), left, col);
    if (cols > 16) store_half(t, at + 16, static_cast<__mmask16>(mask >> 16), right, col + 16);
  }
}

template <bool kLower>
ALOFT_AMX inline void run_block(const AmxTile& t, std::int64_t row, std::int64_t rows,
                                std::int64_t col) {
  const std::uint16_t* a = t.a + row * t.lda;
  const std::uint16_t* b = t.b + col / kAmxPanel * t.panel_stride;
  const float* from = t.partial_in ? t.partial_in + row * t.ldp + col : nullptr;
  start_sums<kLower>(from, t.ldp);
  sum_over_k<kLower>(t, a, b);
  if (t.partial_out && t.planes == 1) {
    store_sums<kLower>(t.partial_out + row * t.ldp + col, t.ldp);
    return;
  }
  alignas(64) float sums[kBlock * kBlock];
  store_sums<kLower>(sums, kBlock);
  const bool repairs = t.planes > 1 && any_odd(sums, rows, kBlock);
  if (repairs)
    repair_sums({t.planes, t.k, a, t.lda, t.a_plane, b, t.b_plane, from, t.ldp}, rows,
                columns_of(t, col), sums);
  if (!t.partial_out) {
    store_block(t, sums, row, rows, col);
    return;
  }
  float* to = t.partial_out + row * t.ldp + col;
  if (!repairs) {
    store_sums<kLower>(to, t.ldp);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < kBlock; c += 16)
      _mm512_storeu_ps(to + r * t.ldp + c, _mm512_load_ps(sums + r * kBlock + c));
}

// Products of a depth of 64, as scores of attention are, without sums so far: one operand's block
// (32 x 64) stays in tiles 4..7, the other passes through 2 and 3, 16 rows or columns at a time. In
// blocks, every second tile loaded would be one that was just there.
ALOFT_AMX void shallow_along_rows(const AmxTile& t, std::int64_t col) {
  const std::uint16_t* b = t.b + col / kAmxPanel * t.panel_stride;
  _tile_loadd(4, b, 128);
  _tile_loadd(5, b + 32, 128);
  _tile_loadd(6, b + kStepB, 128);
  _tile_loadd(7, b + kStepB + 32, 128);
  for (std::int64_t row = 0; row < t.m; row += kRows) {
    const std::uint16_t* a = t.a + row * t.lda;
    _tile_loadd(2, a, t.lda * 2);
    _tile_zero(0);
    _tile_zero(1);
    _tile_dpbf16ps(0, 2, 4);
    _tile_dpbf16ps(1, 2, 5);
    _tile_loadd(3, a + kAmxDepth, t.lda * 2);
    _tile_dpbf16ps(0, 3, 6);
    _tile_dpbf16ps(1, 3, 7);
    float* c = t.partial_out + row * t.ldp + col;
    _tile_stored(0, c, t.ldp * 4);
    _tile_stored(1, c + kRows, t.ldp * 4);
  }
}

ALOFT_AMX void shallow_along_columns(const AmxTile& t, std::int64_t row) {
  const std::uint16_t* a = t.a + row * t.lda;
  _tile_loadd(4, a, t.lda * 2);
  _tile_loadd(5, a + kRows * t.lda, t.lda * 2);
  _tile_loadd(6, a + kAmxDepth, t.lda * 2);
  _tile_loadd(7, a + kRows * t.lda + kAmxDepth, t.lda * 2);
  for (std::int64_t col = 0; col < t.n; col += kRows) {
    const std::uint16_t* b = t.b + col / kAmxPanel * t.panel_stride + col % kAmxPanel * 2;
    _tile_loadd(2, b, 128);
    _tile_zero(0);
    _tile_zero(1);
    _tile_dpbf16ps(0, 4, 2);
    _tile_dpbf16ps(1, 5, 2);
    _tile_loadd(3, b + kStepB, 128);
    _tile_dpbf16ps(0, 6, 3);
    _tile_dpbf16ps(1, 7, 3);
    float* c = t.partial_out + row * t.ldp + col;
    _tile_stored(0, c, t.ldp * 4);
    _tile_stored(1, c + kRows * t.ldp, t.ldp * 4);
  }
}

ALOFT_AMX void run_whole(const AmxTile& t, std::int64_t rows) {
  for (std::int64_t col = 0; col < t.n; col += kBlock)
    for (std::int64_t row = 0; row < rows; row += kBlock) run_block<true>(t, row, kBlock, col);
}

}  // namespace

AmxBlocks::AmxBlocks() { configure(kBlock); }
AmxBlocks::~AmxBlocks() { release(); }

ALOFT_AMX void AmxBlocks::run(const AmxTile& t) const {
  if (t.k != 2 * kAmxDepth || t.planes > 1 || t.partial_in || !t.partial_out)
    return run_whole(t, t.m);
  if (t.m == kBlock) return shallow_along_columns(t, 0);
  for (std::int64_t col = 0; col < t.n; col += kBlock) shallow_along_rows(t, col);
}

ALOFT_AMX void run_amx_tile(const AmxTile& t) {
  const std::int64_t whole = t.m / kBlock * kBlock, rest = t.m - whole;
  if (whole) {
    configure(kBlock);
    run_whole(t, whole);
  }
  if (rest) {
    configure(rest);
    for (std::int64_t col = 0; col < t.n; col += kBlock) {
      if (rest > kRows)
        run_block<true>(t, whole, rest, col);
      else
        run_block<false>(t, whole, rest, col);
    }
  }
  _tile_release();
}

}  // namespace aloft::cpu

#else

namespace aloft::cpu {
void run_amx_tile(const AmxTile&) { ensure(false, "no matrix tiles on this processor"); }
AmxBlocks::AmxBlocks() { ensure(false, "no matrix tiles on this processor"); }
AmxBlocks::~AmxBlocks() = default;
void AmxBlocks::run(const AmxTile&) const {}
}  // namespace aloft::cpu

#endif

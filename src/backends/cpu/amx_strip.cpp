#include "backends/cpu/amx_strip.h"

#include "base/error.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <type_traits>

#define ALOFT_AMX                                                                          \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16," \
                        "prfchw")))

namespace aloft::cpu {
namespace {

constexpr std::int64_t kBlock = 32, kRows = 16;  // of a block, of a tile

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
const TileConfig kWholeTiles;

// ---- packing, in units that take a few cycles each ----

// From rows of B: a unit is two rows of 32, interleaved.
struct RowUnits {
  const std::uint16_t* from;
  std::int64_t ld, depth, count;
  std::uint16_t* to;
  explicit RowUnits(const AmxPanelSource& s, std::uint16_t* panel)
      : from(s.data), ld(s.ld), depth(s.k), count(s.k / 2), to(panel) {}

  ALOFT_AMX inline void unit() {
    // Past the last row the panel behind this one begins, as a rule to be packed next.
    constexpr std::int64_t kAhead = 16;  // units
    const std::uint16_t* soon = from + 2 * kAhead * ld;
    if (count <= kAhead) soon += kAmxPanel - depth * ld;
    _mm_prefetch(reinterpret_cast<const char*>(soon), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(soon + ld), _MM_HINT_T0);
    for (int half = 0; half < 2; ++half) {
      const __m512i even = _mm512_cvtepu16_epi32(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 16 * half)));
      const __m512i odd = _mm512_cvtepu16_epi32(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + ld + 16 * half)));
      _mm512_store_si512(to + 32 * half, _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
    }
    from += 2 * ld;
    to += 2 * kAmxPanel;
    --count;
  }
};

// From rows of B transposed: a unit turns 16 columns of 8 values each.
struct ColumnUnits {
  const std::uint16_t* first;
  std::int64_t ld, k, count, at = 0;
  std::uint16_t* to;
  explicit ColumnUnits(const AmxPanelSource& s, std::uint16_t* panel)
      : first(s.data), ld(s.ld), k(s.k), count(s.k / 4), to(panel) {}

  ALOFT_AMX inline __m512i every_fourth(std::int64_t line) const {
    const auto quad = [&](std::int64_t l) ALOFT_AMX {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + l * ld + at));
    };
    __m512i v = _mm512_castsi128_si512(quad(line));
    v = _mm512_inserti32x4(v, quad(line + 4), 1);
    v = _mm512_inserti32x4(v, quad(line + 8), 2);
    return _mm512_inserti32x4(v, quad(line + 12), 3);
  }

  ALOFT_AMX inline void unit() {
    constexpr std::int64_t kAhead = 96;  // values along a line, of which 32 are a cache line
    const std::int64_t group = at / 8 % 4 * 4;
    // Past the end of these lines the other 16, or the panel behind this one, begin.
    const std::uint16_t* soon = first + at + kAhead;
    if (at + kAhead >= k) soon += 16 * ld - k;
    for (std::int64_t l = group; l < group + 4; ++l)
      _mm_prefetch(reinterpret_cast<const char*>(soon + l * ld), _MM_HINT_T0);
    const __m512i r0 = every_fourth(0), r1 = every_fourth(1);
    const __m512i r2 = every_fourth(2), r3 = every_fourth(3);
    const __m512i x0 = _mm512_unpacklo_epi32(r0, r1), x1 = _mm512_unpacklo_epi32(r2, r3);
    const __m512i x2 = _mm512_unpackhi_epi32(r0, r1), x3 = _mm512_unpackhi_epi32(r2, r3);
    std::uint16_t* line = to + at * kAmxPanel;
    _mm512_store_si512(line, _mm512_unpacklo_epi64(x0, x1));
    _mm512_store_si512(line + 2 * kAmxPanel, _mm512_unpackhi_epi64(x0, x1));
    _mm512_store_si512(line + 4 * kAmxPanel, _mm512_unpacklo_epi64(x2, x3));
    _mm512_store_si512(line + 6 * kAmxPanel, _mm512_unpackhi_epi64(x2, x3));
    at += 8;
    --count;
    if (at < k) return;
    at = 0;  // the other 16 columns
    first += 16 * ld;
    to += 32;
  }
};

// ---- the tiles ----

ALOFT_AMX inline void start_sums(const float* from, std::int64_t ld) {
  if (!from) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  _tile_loadd(0, from, ld * 4);
  _tile_loadd(1, from + kRows, ld * 4);
  _tile_loadd(2, from + kRows * ld, ld * 4);
  _tile_loadd(3, from + kRows * ld + kRows, ld * 4);
}

ALOFT_AMX inline void store_sums(float* to, std::int64_t ld) {
  _tile_stored(0, to, ld * 4);
  _tile_stored(1, to + kRows, ld * 4);
  _tile_stored(2, to + kRows * ld, ld * 4);
  _tile_stored(3, to + kRows * ld + kRows, ld * 4);
}

ALOFT_AMX inline void step(const std::uint16_t* a, std::int64_t lda, const std::uint16_t* b) {
  _tile_loadd(4, a, lda * 2);
  _tile_loadd(6, b, 128);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(7, b + 32, 128);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(5, a + kRows * lda, lda * 2);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

ALOFT_AMX inline void write_line(void* to, __m512i line, bool whole) {
  if (whole)
    _mm512_stream_si512(static_cast<__m512i*>(to), line);
  else
    _mm512_storeu_si512(to, line);
}

}  // namespace

// 16 columns of the block as rows of C: pairs of rows become words of two bf16, which a transpose
// of 16 x 16 words puts side by side.
ALOFT_AMX inline void AmxStrips::write_turned(Block& block) {
  const __m512i interleaved =
      _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                       21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const float* sums = block.sums + block.row;
  __m512i w[16], x[16];
  for (int i = 0; i < 16; ++i, sums += 2 * kBlock)
    w[i] = _mm512_permutexvar_epi16(
        interleaved, reinterpret_cast<__m512i>(
                         _mm512_cvtne2ps_pbh(_mm512_load_ps(sums + kBlock), _mm512_load_ps(sums))));
  for (int i = 0; i < 16; i += 4) {  // 4 x 4 words within each quarter of a vector
    const __m512i a = _mm512_unpacklo_epi32(w[i], w[i + 1]);
    const __m512i b = _mm512_unpackhi_epi32(w[i], w[i + 1]);
    const __m512i c = _mm512_unpacklo_epi32(w[i + 2], w[i + 3]);
    const __m512i d = _mm512_unpackhi_epi32(w[i + 2], w[i + 3]);
    x[i] = _mm512_unpacklo_epi64(a, c);
    x[i + 1] = _mm512_unpackhi_epi64(a, c);
    x[i + 2] = _mm512_unpacklo_epi64(b, d);
    x[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
  auto* to = static_cast<std::uint16_t*>(block.c) + block.row * block.ldc;
  for (int i = 0; i < 4; ++i) {  // then quarters among vectors: row 4 q + i
    const __m512i a = _mm512_shuffle_i32x4(x[i], x[4 + i], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(x[i], x[4 + i], 0xee);
    const __m512i c = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0x44);
    const __m512i d = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0xee);
    const __m512i rows[] = {_mm512_shuffle_i32x4(a, c, 0x88), _mm512_shuffle_i32x4(a, c, 0xdd),
                            _mm512_shuffle_i32x4(b, d, 0x88), _mm512_shuffle_i32x4(b, d, 0xdd)};
    for (int q = 0; q < 4; ++q) write_line(to + (4 * q + i) * block.ldc, rows[q], block.lines);
  }
  block.row += 16;
}

ALOFT_AMX inline void AmxStrips::write_rows(Block& block, std::int64_t rows) {
  if (block.turned) {
    // Half a block at once, or nothing yet.
    for (block.due += rows; block.due >= block.row + 16 && block.row < kBlock;) write_turned(block);
    return;
  }
  const std::int64_t end = std::min(kBlock, block.row + rows);
  for (; block.row < end; ++block.row) {
    const float* sums = block.sums + block.row * kBlock;
    __m512 left = _mm512_load_ps(sums), right = _mm512_load_ps(sums + 16);
    if (block.bias) {
      left = _mm512_add_ps(left, _mm512_loadu_ps(block.bias));
      right = _mm512_add_ps(right, _mm512_loadu_ps(block.bias + 16));
    }
    if (block.f32) {
      float* c = static_cast<float*>(block.c) + block.row * block.ldc;
      write_line(c, _mm512_castps_si512(left), block.lines);
      write_line(c + 16, _mm512_castps_si512(right), block.lines);
    } else {
      auto* c = static_cast<std::uint16_t*>(block.c) + block.row * block.ldc;
      write_line(c, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(right, left)), block.lines);
    }
  }
}

// kPacks: 0 nothing, 1 rows of B, 2 rows of B transposed. kSums: parts of K come before or behind.
template <int kPacks, bool kSums>
ALOFT_AMX void AmxStrips::run_blocks(const AmxStrip& s) {
  using Units = std::conditional_t<kPacks == 2, ColumnUnits, RowUnits>;
  constexpr std::int64_t kRowsAStep = 2;
  const AmxPanelSource none;
  Units units(kPacks ? *s.next : none, s.next_panel);
  const std::int64_t steps = s.m / kBlock * (s.k / kAmxDepth);
  const std::int64_t units_a_step = (units.count + steps - 1) / steps;
  const std::int64_t element = static_cast<std::int64_t>(size_of(s.c_type));
  const float* partial = s.partial_out ? s.partial_out : s.partial_in;
  for (std::int64_t row = 0; row < s.m; row += kBlock) {
    const std::uint16_t *a = s.a + row * s.lda, *b = s.b;
    start_sums(s.partial_in ? s.partial_in + row * s.ldp : nullptr, s.ldp);
    // Sums of the block below this one, two rows a step.
    const float* soon = kSums && row + kBlock < s.m ? partial + (row + kBlock) * s.ldp : nullptr;
    const float* soon_end = soon ? soon + kBlock * s.ldp : nullptr;
    for (std::int64_t k = 0; k < s.k; k += kAmxDepth, b += kAmxDepth * kAmxPanel) {
      step(a + k, s.lda, b);
      if constexpr (kSums)
        for (int r = 0; r < 2 && soon < soon_end; ++r, soon += s.ldp) {
          __builtin_prefetch(soon, 1, 3);
          __builtin_prefetch(soon + 16, 1, 3);
        }
      if constexpr (kPacks != 0)
        for (std::int64_t u = 0; u < units_a_step && units.count > 0; ++u) units.unit();
      write_rows(waiting_, kRowsAStep);
    }
    if (s.partial_out) {
      store_sums(s.partial_out + row * s.ldp, s.ldp);
      continue;
    }
    write_rows(waiting_, kBlock);
    float* sums = sums_[turn_];
    turn_ ^= 1;
    store_sums(sums, kBlock);
    char* c = static_cast<char*>(s.c) + (s.turned ? row : row * s.ldc) * element;
    const bool lines = reinterpret_cast<std::uintptr_t>(c) % 64 == 0 && s.ldc * element % 64 == 0;
    waiting_ = {sums, c, s.ldc, 0, 0, s.bias, s.c_type == DType::F32, s.turned, lines};
  }
  while (units.count > 0) units.unit();
}

template <bool kSums>
ALOFT_AMX void AmxStrips::run_packing(const AmxStrip& strip) {
  if (!strip.next)
    run_blocks<0, kSums>(strip);
  else if (strip.next->transposed)
    run_blocks<2, kSums>(strip);
  else
    run_blocks<1, kSums>(strip);
}

ALOFT_AMX void AmxStrips::run(const AmxStrip& strip) {
  _tile_loadconfig(&kWholeTiles);
  if (strip.partial_in || strip.partial_out)
    run_packing<true>(strip);
  else
    run_packing<false>(strip);
}

ALOFT_AMX void AmxStrips::finish() {
  write_rows(waiting_, kBlock);
  _mm_sfence();
  _tile_release();
}

ALOFT_AMX void AmxStrips::pack(const AmxPanelSource& source, std::uint16_t* panel) {
  if (source.transposed) {
    ColumnUnits units(source, panel);
    while (units.count > 0) units.unit();
  } else {
    RowUnits units(source, panel);
    while (units.count > 0) units.unit();
  }
}

}  // namespace aloft::cpu

#else

namespace aloft::cpu {
void AmxStrips::run(const AmxStrip&) { ensure(false, "no matrix tiles on this processor"); }
void AmxStrips::finish() {}
void AmxStrips::pack(const AmxPanelSource&, std::uint16_t*) {}
}  // namespace aloft::cpu

#endif

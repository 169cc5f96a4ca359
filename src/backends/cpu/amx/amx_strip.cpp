#include "backends/cpu/amx/amx_strip.h"

#include "base/error.h"

#if defined(__x86_64__)

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "backends/cpu/amx/amx_blocks-inl.h"
#include "backends/cpu/amx/amx_repair.h"
#include "backends/cpu/amx/plane_units-inl.h"

namespace aloft::cpu {
namespace {

const TileConfig kWholeTiles;

// ---- packing, in pieces that take a few cycles each ----

// From rows of B: a piece is two rows of 32, interleaved.
struct RowPieces {
  const std::uint16_t* from;
  std::int64_t ld, depth, count;
  std::uint16_t* to;
  explicit RowPieces(const AmxPanelSource& s, std::uint16_t* panel)
      : from(static_cast<const std::uint16_t*>(s.data)),
        ld(s.ld),
        depth(s.k),
        count(s.k / 2),
        to(panel) {}

  ALOFT_AMX inline void piece() {
    // Past the last row the panel behind this one begins, as a rule to be packed next.
    constexpr std::int64_t kAhead = 16;  // pieces
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

// From rows of B transposed: a piece turns 16 columns of 8 values each.
struct ColumnPieces {
  const std::uint16_t* first;
  std::int64_t ld, k, count, at = 0;
  std::uint16_t* to;
  explicit ColumnPieces(const AmxPanelSource& s, std::uint16_t* panel)
      : first(static_cast<const std::uint16_t*>(s.data)),
        ld(s.ld),
        k(s.k),
        count(s.k / 4),
        to(panel) {}

  ALOFT_AMX inline __m512i every_fourth(std::int64_t line) const {
    const auto quad = [&](std::int64_t l) ALOFT_AMX {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + l * ld + at));
    };
    __m512i v = _mm512_castsi128_si512(quad(line));
    v = _mm512_inserti32x4(v, quad(line + 4), 1);
    v = _mm512_inserti32x4(v, quad(line + 8), 2);
    return _mm512_inserti32x4(v, quad(line + 12), 3);
  }

  ALOFT_AMX inline void piece() {
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

struct NoPieces {
  static constexpr std::int64_t count = 0;
  NoPieces(const AmxPanelSource&, std::uint16_t*) {}
  void piece() {}
};

ALOFT_AMX inline void write_line(void* to, __m512i line, bool whole) {
  if (whole)
    _mm512_stream_si512(static_cast<__m512i*>(to), line);
  else
    _mm512_storeu_si512(to, line);
}

// 32 values in their order, rounded.
ALOFT_AMX inline __m512i narrow(DType type, __m512 first, __m512 second) {
  if (type == DType::BF16) return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT;
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(first, kNearest)),
                            _mm512_cvtps_ph(second, kNearest), 1);
}

}  // namespace

// Writes a 16 x 16 transpose of words, a row of it every `stride` bytes.
ALOFT_AMX static inline void write_transpose(const __m512i* w, char* to, std::int64_t stride,
                                             bool lines) {
  __m512i x[16];
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
  for (int i = 0; i < 4; ++i) {  // then quarters among vectors: row 4 q + i
    const __m512i a = _mm512_shuffle_i32x4(x[i], x[4 + i], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(x[i], x[4 + i], 0xee);
    const __m512i c = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0x44);
    const __m512i d = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0xee);
    const __m512i rows[] = {_mm512_shuffle_i32x4(a, c, 0x88), _mm512_shuffle_i32x4(a, c, 0xdd),
                            _mm512_shuffle_i32x4(b, d, 0x88), _mm512_shuffle_i32x4(b, d, 0xdd)};
    for (int q = 0; q < 4; ++q) write_line(to + (4 * q + i) * stride, rows[q], lines);
  }
}

// 16 columns of the block as rows of C. Pairs of rows become words of two values, of which a
// transpose puts 16 side by side; f32 are words already.
ALOFT_AMX inline void AmxStrips::write_turned(Block& block) {
  const std::int64_t stride = block.ldc * static_cast<std::int64_t>(size_of(block.type));
  const float* sums = block.sums + block.row;
  char* to = static_cast<char*>(block.c) + block.row * stride;
  __m512i w[16];
  if (block.type == DType::F32) {
    for (int half = 0; half < 2; ++half, to += 64) {
      for (int i = 0; i < 16; ++i, sums += kBlock) w[i] = _mm512_castps_si512(_mm512_load_ps(sums));
      write_transpose(w, to, stride, block.lines);
    }
  } else {
    for (int i = 0; i < 16; ++i, sums += 2 * kBlock)
      w[i] = interleave_halves(
          narrow(block.type, _mm512_load_ps(sums), _mm512_load_ps(sums + kBlock)));
    write_transpose(w, to, stride, block.lines);
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
    if (block.type == DType::F32) {
      float* c = static_cast<float*>(block.c) + block.row * block.ldc;
      write_line(c, _mm512_castps_si512(left), block.lines);
      write_line(c + 16, _mm512_castps_si512(right), block.lines);
    } else {
      auto* c = static_cast<std::uint16_t*>(block.c) + block.row * block.ldc;
      write_line(c, narrow(block.type, left, right), block.lines);
    }
  }
}

// The block's sums wait from here on, repaired. Behind a part of K that is not the last they go
// among the strip's sums.
ALOFT_AMX inline void AmxStrips::keep(const AmxStrip& s, std::int64_t row) {
  float* sums = sums_[turn_];
  turn_ ^= 1;
  store_sums<true>(sums, kBlock);
  if (s.planes > 1 && any_odd(sums, kBlock, kBlock))
    repair_sums({s.planes, s.k, s.a + row * s.lda, s.lda, s.a_plane, s.b, s.b_plane,
                 s.partial_in ? s.partial_in + row * s.ldp : nullptr, s.ldp},
                kBlock, ~0u, sums);
  if (s.partial_out) {
    waiting_ = {sums, s.partial_out + row * s.ldp, s.ldp, 0, 0, nullptr, DType::F32, false, false};
    return;
  }
  const std::int64_t element = static_cast<std::int64_t>(size_of(s.c_type));
  char* c = static_cast<char*>(s.c) + (s.turned ? row : row * s.ldc) * element;
  const bool lines = reinterpret_cast<std::uintptr_t>(c) % 64 == 0 && s.ldc * element % 64 == 0;
  waiting_ = {sums, c, s.ldc, 0, 0, s.bias, s.c_type, s.turned, lines};
}

// Packing between the tile products: so many pieces in the strip, evenly. A piece or two at a time
// cost nothing there; the same work once a step costs what it takes alone, because the tile loads
// behind it start as much later (docs/decisions/0004).
template <class Pieces, int kEvery>
struct Packing {
  Pieces& pieces;
  std::int64_t due, slots, credit = 0;
  template <int kProduct>
  ALOFT_AMX inline void after() {
    if constexpr (!std::is_same_v<Pieces, NoPieces> && (kProduct + 1) % kEvery == 0)
      for (credit += due; credit >= slots; credit -= slots) pieces.piece();
  }
};

// kSums: parts of K come before or behind.
template <class Pieces, const auto& kTerms, bool kSums>
ALOFT_AMX void AmxStrips::run_blocks(const AmxStrip& s) {
  constexpr std::int64_t kRowsAStep = 2;
  constexpr bool kPacks = !std::is_same_v<Pieces, NoPieces>, kPlanes = std::size(kTerms) > 1;
  const AmxPanelSource none;
  Pieces pieces(kPacks ? *s.next : none, s.next_panel);
  const std::int64_t steps = s.m / kBlock * (s.k / kAmxDepth);
  constexpr int kProducts = 4 * std::size(kTerms), kSlots = kPlanes ? kProducts / 3 : 2;
  Packing<Pieces, kProducts / kSlots> packing{pieces, pieces.count, steps * kSlots};
  const float* partial = s.partial_out ? s.partial_out : s.partial_in;
  const PlaneStrides strides{s.lda, s.a_plane, s.b_plane};
  for (std::int64_t row = 0; row < s.m; row += kBlock) {
    const std::uint16_t *a = s.a + row * s.lda, *b = s.b;
    start_sums<true>(s.partial_in ? s.partial_in + row * s.ldp : nullptr, s.ldp);
    // Sums of the block below this one, two rows a step.
    const float* soon = kSums && row + kBlock < s.m ? partial + (row + kBlock) * s.ldp : nullptr;
    const float* soon_end = soon ? soon + kBlock * s.ldp : nullptr;
    for (std::int64_t k = 0; k < s.k; k += kAmxDepth, b += kAmxDepth * kAmxPanel) {
      step_planes<true, kTerms>(a + k, b, strides, packing);
      if constexpr (kSums)
        for (int r = 0; r < 2 && soon < soon_end; ++r, soon += s.ldp) {
          __builtin_prefetch(soon, 1, 3);
          __builtin_prefetch(soon + 16, 1, 3);
        }
      write_rows(waiting_, kRowsAStep);
    }
    if (s.partial_out && !kPlanes) {
      store_sums<true>(s.partial_out + row * s.ldp, s.ldp);
      continue;
    }
    write_rows(waiting_, kBlock);
    keep(s, row);
  }
}

template <class Rows, class Columns, const auto& kTerms, bool kSums>
ALOFT_AMX void AmxStrips::run_packing(const AmxStrip& strip) {
  if (!strip.next)
    run_blocks<NoPieces, kTerms, kSums>(strip);
  else if (strip.next->transposed)
    run_blocks<Columns, kTerms, kSums>(strip);
  else
    run_blocks<Rows, kTerms, kSums>(strip);
}

template <class Split, const auto& kTerms>
ALOFT_AMX void AmxStrips::run_planes(const AmxStrip& strip) {
  run_packing<PlaneRowPieces<Split>, PlaneColumnPieces<Split>, kTerms, true>(strip);
}

ALOFT_AMX void AmxStrips::run(const AmxStrip& strip) {
  _tile_loadconfig(&kWholeTiles);
  if (strip.products == 6) return run_planes<SplitF32<3>, kTerms6>(strip);
  if (strip.products == 4) return run_planes<SplitF16, kTerms4>(strip);
  if (strip.products == 3) {
    if (strip.next && strip.next->type == DType::F32)
      return run_planes<SplitF32<2>, kTerms3>(strip);
    return run_planes<SplitF16, kTerms3>(strip);
  }
  if (strip.partial_in || strip.partial_out)
    run_packing<RowPieces, ColumnPieces, kTerms1, true>(strip);
  else
    run_packing<RowPieces, ColumnPieces, kTerms1, false>(strip);
}

ALOFT_AMX void AmxStrips::finish() {
  write_rows(waiting_, kBlock);
  _mm_sfence();
  _tile_release();
}

template <class Rows, class Columns>
ALOFT_AMX static void pack_at_once(const AmxPanelSource& source, std::uint16_t* panel) {
  if (source.transposed) {
    Columns pieces(source, panel);
    while (pieces.count > 0) pieces.piece();
  } else {
    Rows pieces(source, panel);
    while (pieces.count > 0) pieces.piece();
  }
}

void AmxStrips::pack(const AmxPanelSource& source, std::uint16_t* panel) {
  if (source.type == DType::BF16)
    pack_at_once<RowPieces, ColumnPieces>(source, panel);
  else if (source.type == DType::F16)
    pack_at_once<PlaneRowPieces<SplitF16>, PlaneColumnPieces<SplitF16>>(source, panel);
  else if (source.planes == 2)
    pack_at_once<PlaneRowPieces<SplitF32<2>>, PlaneColumnPieces<SplitF32<2>>>(source, panel);
  else
    pack_at_once<PlaneRowPieces<SplitF32<3>>, PlaneColumnPieces<SplitF32<3>>>(source, panel);
}

}  // namespace aloft::cpu

#else

namespace aloft::cpu {
void AmxStrips::run(const AmxStrip&) { ensure(false, "no matrix tiles on this processor"); }
void AmxStrips::finish() {}
void AmxStrips::pack(const AmxPanelSource&, std::uint16_t*) {}
}  // namespace aloft::cpu

#endif

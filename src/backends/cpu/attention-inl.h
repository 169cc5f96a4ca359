// What attention's two directions share: how one head's operands are laid out for the products of
// blocks, in f32 vectors or on the matrix units, and the products themselves. Include from a file
// that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_ATTENTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_ATTENTION_INL
#undef ALOFT_CPU_ATTENTION_INL
#else
#define ALOFT_CPU_ATTENTION_INL
#endif

#include <algorithm>

#include "backends/cpu/amx.h"
#include "backends/cpu/attention.h"
#include "backends/cpu/blocks-inl.h"
#include "backends/cpu/carve.h"
#include "backends/cpu/exp-inl.h"
#include "backends/cpu/functions-inl.h"
#include "backends/cpu/pack.h"
#include "backends/cpu/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

inline constexpr std::int64_t kBlock = 64;  // queries, and keys, of a block of scores

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
constexpr std::int64_t blocks_of(std::int64_t n) { return (n + kBlock - 1) / kBlock; }

// One head of one operand: rows of `width` elements.
struct HeadRows {
  const void* data;
  DType type;
  std::int64_t row, width;
  const void* at_row(std::int64_t t) const { return cpu::at(data, t * row, type); }
};

inline HeadRows head_rows(const void* data, DType type, const HeadsLayout& l, std::int64_t width,
                          std::int64_t batch, std::int64_t head) {
  return {cpu::at(data, l.offset + batch * l.batch + head * width, type), type, l.row, width};
}

template <class T>
HWY_INLINE void store_rows_as(const float* rows, std::int64_t ld, std::int64_t count, T* to,
                              const HeadRows& head) {
  const Floats d;
  const std::int64_t whole = head.width / kVectorLanes * kVectorLanes;
  for (std::int64_t t = 0; t < count; ++t, rows += ld, to += head.row) {
    for (std::int64_t i = 0; i < whole; i += kVectorLanes) store(d, hn::LoadU(d, rows + i), to + i);
    if (whole < head.width)
      store_n(d, load_n(d, rows + whole, head.width - whole), to + whole, head.width - whole);
  }
}
// Rows of f32 as f32, bf16 or f16 rows of one head in memory.
inline void store_rows(const float* rows, std::int64_t ld, std::int64_t count, void* data,
                       const HeadRows& head) {
  if (head.type == DType::F32)
    store_rows_as(rows, ld, count, static_cast<float*>(data), head);
  else if (head.type == DType::BF16)
    store_rows_as(rows, ld, count, static_cast<scalar::Bf16*>(data), head);
  else
    store_rows_as(rows, ld, count, static_cast<scalar::F16*>(data), head);
}

// ---- operands of the products in f32 ----

struct F32Operands {
  explicit F32Operands(const AttentionShape& s) : width(s.width), low(s.dtype != DType::F32) {}

  std::int64_t width;
  bool low;

  // Left operand: rows read element by element, so any f32 rows will do as they lie.
  struct Left {
    Strided rows;
  };
  std::int64_t left_floats(std::int64_t rows) const { return low ? rows * width : 0; }
  Left left(const HeadRows& h, std::int64_t count, float* to) const {
    if (!low) return {{static_cast<const float*>(h.data), h.row, 1}};
    for (std::int64_t t = 0; t < count; ++t) widen(h.type, h.at_row(t), to + t * width, width);
    return {{to, width, 1}};
  }

  // Transposed right operand: [width][kBlock] of one block of rows, zero past `count`.
  std::int64_t turned_floats() const { return width * kBlock; }
  void turn(const HeadRows& h, std::int64_t first, std::int64_t count, float* to,
            float* buffer) const {
    const float* rows = static_cast<const float*>(h.at_row(first));
    std::int64_t ld = h.row;
    if (low) {
      for (std::int64_t t = 0; t < count; ++t)
        widen(h.type, h.at_row(first + t), buffer + t * width, width);
      rows = buffer;
      ld = width;
    }
    if (count < kBlock) std::memset(to, 0, static_cast<std::size_t>(turned_floats()) * 4);
    transpose_block(rows, ld, count, width, to, kBlock);
  }
  // s[keys][kBlock] = left rows [first, first + keys) times a turned block.
  void scores(const Left& l, std::int64_t first, std::int64_t keys, const float* turned,
              float* s) const {
    const Strided rows{l.rows.data + first * l.rows.row, l.rows.row, 1};
    product(keys, kBlock, width, rows, turned, kBlock, s, kBlock, false);
  }
};

// ---- operands on the matrix units ----

struct AmxOperands {
  explicit AmxOperands(const AttentionShape& s)
      : width(s.width),
        depth(round_up(s.width, kAmxDepth)),
        planes(s.dtype == DType::F16 ? 2 : 1),
        to(planes == 2 ? PackedType::Bf16x2 : PackedType::Bf16) {}

  std::int64_t width, depth;
  int planes;
  PackedType to;

  static MatrixView view(const HeadRows& h, std::int64_t first, bool transposed) {
    return {h.at_row(first), h.type, h.row, transposed};
  }

  // Left operand: bf16 rows, as they lie where their width fills whole tiles.
  struct Left {
    const std::uint16_t* data;
    std::int64_t ld, plane;
  };
  bool lies_ready() const { return planes == 1 && depth == width; }
  std::int64_t left_words(std::int64_t rows) const {
    return lies_ready() ? 0 : rows * depth * planes;
  }
  Left left(const HeadRows& h, std::int64_t count, std::uint16_t* memory) const {
    if (lies_ready()) return {static_cast<const std::uint16_t*>(h.data), h.row, 0};
    const std::int64_t plane = count * depth;
    pack_dense(view(h, 0, false), count, width, depth, to, memory, depth, plane);
    return {memory, depth, plane};
  }

  // The transpose of rows as a left operand: [width][count], zeros up to a multiple of kBlock.
  std::int64_t left_turned_words(std::int64_t rows) const {
    return width * blocks_of(rows) * kBlock * planes;
  }
  Left left_turned(const HeadRows& h, std::int64_t count, std::uint16_t* memory) const {
    const std::int64_t ld = blocks_of(count) * kBlock, plane = width * ld;
    pack_dense(view(h, 0, true), width, count, ld, to, memory, ld, plane);
    return {memory, ld, plane};
  }

  // Right operand for scores: a block of rows, transposed, as two panels of 32; and for sums over
  // the block: the rows themselves as panels over the width.
  std::int64_t turned_words() const { return 2 * depth * kAmxPanel * planes; }
  void turn(const HeadRows& h, std::int64_t first, std::int64_t count,
            std::uint16_t* memory) const {
    const std::int64_t panel = depth * kAmxPanel;
    for (std::int64_t p = 0; p < 2; ++p) {
      const std::int64_t n = std::clamp<std::int64_t>(count - p * kAmxPanel, 0, kAmxPanel);
      pack_panel(view(h, first + (n > 0 ? p * kAmxPanel : 0), true), width, n, depth, to,
                 memory + p * panel, 2 * panel);
    }
  }
  std::int64_t row_panels() const { return round_up(width, kAmxPanel) / kAmxPanel; }
  std::int64_t rows_words() const { return row_panels() * kBlock * kAmxPanel * planes; }
  void rows(const HeadRows& h, std::int64_t first, std::int64_t count,
            std::uint16_t* memory) const {
    const std::int64_t panel = kBlock * kAmxPanel, plane = row_panels() * panel;
    for (std::int64_t p = 0; p < row_panels(); ++p) {
      const std::int64_t n = std::min(kAmxPanel, width - p * kAmxPanel);
      pack_panel(view(h, first, false).from(0, p * kAmxPanel), count, n, kBlock, to,
                 memory + p * panel, plane);
    }
  }

  AmxTile tile(std::int64_t m, std::int64_t n, std::int64_t k, const std::uint16_t* a,
               std::int64_t lda, std::int64_t a_plane, const std::uint16_t* b,
               std::int64_t panel_stride, std::int64_t b_plane, float* c, std::int64_t ldc,
               bool add) const {
    AmxTile t;
    t.m = m, t.n = n, t.k = k;
    t.a = a, t.lda = lda, t.a_plane = a_plane;
    t.b = b, t.panel_stride = panel_stride, t.b_plane = b_plane;
    t.planes = planes;
    t.products = planes == 2 ? 3 : 1;
    t.partial_in = add ? c : nullptr;
    t.partial_out = c;
    t.ldp = ldc;
    t.c_type = planes == 2 ? DType::F16 : DType::BF16;
    return t;
  }
  void scores(const Left& l, std::int64_t first, std::int64_t keys, const std::uint16_t* turned,
              float* s) const {
    const std::int64_t panel = depth * kAmxPanel;
    run_amx_tile(tile(keys, kBlock, depth, l.data + first * l.ld, l.ld, l.plane, turned, panel,
                      2 * panel, s, kBlock, false));
  }
};

// Which of a block's elements a causal mask leaves: row r (a key) is seen by columns (queries)
// from first + r on. Not masked at all where that is never positive.
struct BlockMask {
  std::int64_t first = 0;
  bool masks = false;
  HWY_INLINE hn::Mask<Floats> seen(std::int64_t row, FloatV columns) const {
    return hn::Ge(columns, hn::Set(Floats(), static_cast<float>(first + row)));
  }
};

inline BlockMask mask_of(bool causal, std::int64_t first_key, std::int64_t keys,
                         std::int64_t first_query, std::int64_t seen_before) {
  BlockMask m;
  m.first = first_key - first_query - seen_before;
  m.masks = causal && m.first + keys - 1 > 0;
  return m;
}

HWY_INLINE FloatV columns_from(std::int64_t j) { return hn::Iota(Floats(), static_cast<float>(j)); }

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

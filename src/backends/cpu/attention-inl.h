// What attention's two directions share in f32 vectors: how one head's operands are laid out for
// the products of blocks, and the products themselves. Include from a file that Highway compiles
// once a target, after highway.h.
#if defined(ALOFT_CPU_ATTENTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_ATTENTION_INL
#undef ALOFT_CPU_ATTENTION_INL
#else
#define ALOFT_CPU_ATTENTION_INL
#endif

#include <algorithm>

#include "backends/cpu/attention.h"
#include "backends/cpu/attention_heads.h"
#include "backends/cpu/blocks-inl.h"
#include "backends/cpu/carve.h"
#include "backends/cpu/exp-inl.h"
#include "backends/cpu/functions-inl.h"
#include "backends/cpu/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

inline constexpr std::int64_t kBlock = 64;  // queries, and keys, of a block of scores

constexpr std::int64_t blocks_of(std::int64_t n) { return (n + kBlock - 1) / kBlock; }

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

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
#include <cstring>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/attention_heads.h"
#include "backends/cpu/carve.h"
#include "backends/cpu/vectors/blocks-inl.h"
#include "backends/cpu/vectors/exp-inl.h"
#include "backends/cpu/vectors/functions-inl.h"
#include "backends/cpu/vectors/tiles.h"

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

// Which of a block's elements a causal mask leaves: row r (a key) is seen by columns (queries)
// from first + r on, and in a block at the edge of a window by those before first + r + window.
// Not masked at all where that leaves all. Rows and columns go by vectors: what no element of a
// group of rows and a vector of columns needs is not computed, and what is computed beyond the mask
// becomes zero.
struct BlockMask {
  std::int64_t first = 0, keys = 0;
  bool masks = false;
  std::int64_t window = 0;  // 0: hides nothing of this block
  HWY_INLINE hn::Mask<Floats> seen(std::int64_t row, FloatV columns) const {
    return hn::Ge(columns, hn::Set(Floats(), static_cast<float>(first + row)));
  }
  HWY_INLINE hn::Mask<Floats> seen_in_window(std::int64_t row, FloatV columns) const {
    const auto end = hn::Set(Floats(), static_cast<float>(first + row + window));
    return hn::And(seen(row, columns), hn::Lt(columns, end));
  }
  // Rows that the window hides from some of a vector's columns.
  std::int64_t rows_behind(std::int64_t column) const {
    if (window == 0) return 0;
    return std::clamp<std::int64_t>(column + kVectorLanes - first - window, 0, rows_until(column));
  }
  // Rows that all of a vector's columns see, and those that any group of rows needs of it.
  std::int64_t rows_before(std::int64_t column) const {
    return masks ? std::clamp<std::int64_t>(column - first + 1, 0, keys) : keys;
  }
  std::int64_t rows_until(std::int64_t column) const {
    if (!masks) return keys;
    return std::min(
        keys, round_up(std::max<std::int64_t>(0, column + kVectorLanes - first), kVectorLanes));
  }
  // The first column of the group of rows from `row` on, and how many rows it has.
  std::int64_t column_of(std::int64_t row) const {
    return masks ? std::max<std::int64_t>(0, first + row) / kVectorLanes * kVectorLanes : 0;
  }
  std::int64_t group() const { return masks ? kVectorLanes : kBlock; }
};

// Rows of one head as f32, zeros between the width and the next multiple of 16: a right operand.
struct F32Rows {
  const float* data = nullptr;
  std::int64_t ld = 0;
  const float* at(std::int64_t t) const { return data + t * ld; }
};

struct F32Operands {
  explicit F32Operands(const AttentionShape& s)
      : width(s.width),
        ld(round_up(s.width, 16)),
        ready(s.dtype == DType::F32 && s.width % 16 == 0) {}

  std::int64_t width, ld;
  bool ready;  // rows serve as they lie

  std::int64_t rows_floats(std::int64_t rows) const { return ready ? 0 : rows * ld; }
  F32Rows rows(const HeadRows& h, std::int64_t count, float* to) const {
    if (ready) return {static_cast<const float*>(h.data), h.row};
    std::memset(to, 0, static_cast<std::size_t>(count * ld) * sizeof(float));
    for (std::int64_t t = 0; t < count; ++t) widen(h.type, h.at_row(t), to + t * ld, width);
    return {to, ld};
  }

  // Transposed right operand: [width][kBlock] of one block of rows, zero past `count`.
  std::int64_t turned_floats() const { return width * kBlock; }
  void turn(const F32Rows& x, std::int64_t first, std::int64_t count, float* to) const {
    if (count < kBlock) std::memset(to, 0, static_cast<std::size_t>(turned_floats()) * 4);
    transpose_block(x.at(first), x.ld, count, width, to, kBlock);
  }
  // s[keys][kBlock] = left rows from `first` on times a turned block, where the mask needs them.
  void scores(const F32Rows& l, std::int64_t first, const BlockMask& mask, const float* turned,
              float* s) const {
    for (std::int64_t r = 0; r < mask.keys; r += mask.group()) {
      const std::int64_t column = mask.column_of(r);
      if (column >= kBlock) return;
      product(std::min(mask.group(), mask.keys - r), kBlock - column, width,
              {l.at(first + r), l.ld, 1}, turned + column, kBlock, s + r * kBlock + column, kBlock,
              false);
    }
  }
  // c[queries][ld] += x^T y, x a block [keys][kBlock] of weights, where the mask left any.
  void add_by_queries(const float* x, std::int64_t queries, const BlockMask& mask, const float* y,
                      std::int64_t ldy, float* c) const {
    for (std::int64_t q = 0; q < queries; q += mask.group())
      product(std::min(mask.group(), queries - q), ld, mask.rows_until(q), {x + q, 1, kBlock}, y,
              ldy, c + q * ld, ld, true);
  }
  // c[keys][ld] += x y likewise.
  void add_by_keys(const float* x, std::int64_t queries, const BlockMask& mask, const float* y,
                   std::int64_t ldy, float* c) const {
    for (std::int64_t r = 0; r < mask.keys; r += mask.group()) {
      const std::int64_t column = mask.column_of(r);
      if (column >= queries) return;
      product(std::min(mask.group(), mask.keys - r), ld, queries - column,
              {x + r * kBlock + column, kBlock, 1}, y + column * ldy, ldy, c + r * ld, ld, true);
    }
  }
};

inline BlockMask mask_of(const AttentionShape& s, std::int64_t first_key, std::int64_t keys,
                         std::int64_t first_query, std::int64_t seen_before) {
  BlockMask m;
  m.keys = keys;
  m.first = first_key - first_query - seen_before;
  m.masks = s.causal && m.first + keys - 1 > 0;
  if (s.window > 0 && kBlock > m.first + s.window) m.window = s.window;
  return m;
}

HWY_INLINE hn::Mask<Floats> is_far(FloatV shift) {
  const Floats d;
  const FloatV size = hn::Abs(shift);
  return hn::And(hn::Ge(size, hn::Set(d, kFarScore)), hn::Lt(size, hn::Inf(d)));
}
// score factor - shift, with the far lanes' product rounded.
HWY_INLINE FloatV shifted_score(FloatV score, FloatV factor, FloatV shift, hn::Mask<Floats> far) {
  return hn::IfThenElse(far, hn::Sub(hn::Mul(score, factor), shift),
                        hn::MulSub(score, factor, shift));
}

// Scores s of a block become cap tanh(scale s / cap), and slopes, if wanted, what is left of a
// score's cotangent: scale (1 - tanh^2).
inline void bend(float* s, float* slopes, float scale, float cap, const BlockMask& mask) {
  const Floats d;
  const FloatV inner = hn::Set(d, scale / cap), outer = hn::Set(d, cap), whole = hn::Set(d, scale);
  for (std::int64_t r = 0; r < mask.keys; ++r)
    for (std::int64_t j = mask.column_of(r); j < kBlock; j += kVectorLanes) {
      const std::int64_t at = r * kBlock + j;
      const FloatV t = tanh_of(hn::Mul(hn::LoadU(d, s + at), inner));
      hn::StoreU(hn::Mul(t, outer), d, s + at);
      if (slopes) hn::StoreU(hn::NegMulAdd(hn::Mul(t, t), whole, whole), d, slopes + at);
    }
}

HWY_INLINE FloatV columns_from(std::int64_t j) { return hn::Iota(Floats(), static_cast<float>(j)); }

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

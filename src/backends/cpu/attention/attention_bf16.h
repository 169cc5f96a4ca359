// Attention whose products are of bf16: on the matrix units, there for f16 too, as sums of two bf16
// planes (planes.h); else in vectors of pairs (matmul/bf16_strip.h). How one head's operands are
// laid out for the products, and the tasks of both directions. What stands between the products is
// in attention_softmax.h.
//
// Blocks are 32 queries by up to kSpan keys, because a deep product leaves its sums in the tiles:
// with 64 by 64 loading and storing them took as long as the products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/cpu/amx/amx.h"
#include "backends/cpu/attention/attention_heads.h"
#include "backends/cpu/matmul/pack.h"

namespace aloft::cpu {

inline constexpr std::int64_t kQueryBlock = 32;  // queries of a block
inline constexpr std::int64_t kSpan = 256;       // keys of a block, queries of a deep product
// Row stride of a block of weights: an odd number of cache lines, so that rows spread over sets.
inline constexpr std::int64_t kSpanStride = kSpan + 32;

// Where a left operand, rows of bf16, lies.
struct Bf16Left {
  const std::uint16_t* data;
  std::int64_t ld, plane;
};
// Where a right operand, panels of 32 columns, lies.
struct Bf16Right {
  const std::uint16_t* data;
  std::int64_t panel, plane;
};

// While one lives, the thread's tiles are laid out for blocks, where there are matrix units.
struct UnitBlocks {
  std::optional<AmxBlocks> amx;
  UnitBlocks();
};

struct Bf16Operands {
  explicit Bf16Operands(const AttentionShape& s);

  std::int64_t width, depth;  // of a head, and up to whole tiles
  int planes;
  PackedType to;

  std::int64_t panels() const { return round_up(width, kAmxPanel) / kAmxPanel; }
  std::int64_t ld() const { return panels() * kAmxPanel; }  // row stride of sums over the width

  // Left operands are followed by rows of anything up to whole blocks: what products make of them
  // is not looked at.
  // Rows as a left operand: [count][depth].
  std::int64_t rows_words(std::int64_t count) const {
    return round_up(count, kAmxPanel) * depth * planes;
  }
  Bf16Left rows(const HeadRows& h, std::int64_t count, std::uint16_t* memory) const;
  // Their transpose as a left operand: [width][count], zeros up to whole tiles.
  std::int64_t turned_words(std::int64_t count) const {
    return ld() * round_up(count, kAmxDepth) * planes;
  }
  Bf16Left turned(const HeadRows& h, std::int64_t count, std::uint16_t* memory) const;
  // Their transpose as a right operand: a panel [depth] deep for every 32 rows.
  std::int64_t turned_panels_words(std::int64_t count) const {
    return depth * round_up(count, kAmxPanel) * planes;
  }
  Bf16Right turned_panels(const HeadRows& h, std::int64_t count, std::uint16_t* memory) const;
  // The rows as a right operand: panels over the width, `count` deep.
  std::int64_t row_panels_words(std::int64_t count) const {
    return ld() * round_up(count, kAmxDepth) * planes;
  }
  Bf16Right row_panels(const HeadRows& h, std::int64_t count, std::uint16_t* memory) const;

  // c[m][n] = a b, or c += a b; whole blocks of 32 x 32 of c may be written.
  void product(const UnitBlocks& blocks, std::int64_t m, std::int64_t n, std::int64_t k,
               const Bf16Left& a, const Bf16Right& b, float* c, std::int64_t ldc, bool add) const;

 private:
  void product_in_vectors(std::int64_t m, std::int64_t n, std::int64_t k, const Bf16Left& a,
                          const Bf16Right& b, float* c, std::int64_t ldc, bool add) const;
};

// Tasks as attention_forward.cpp and attention_backward.cpp cut the work. With `bytes` they only
// say how much scratch they take.
void bf16_attention_forward_task(const AttentionShape& s, const AttentionExtents& actual,
                                 const AttentionForward& x, std::int64_t task, void* scratch,
                                 std::size_t* bytes);
void bf16_attention_backward_task(const AttentionShape& s, const AttentionExtents& actual,
                                  const AttentionBackward& x, std::int64_t task, void* scratch,
                                  std::size_t* bytes);
// f32 heads, negative scales (whose largest score is the least product), caps so far away that what
// their tangent is off by would be seen, and processors without units for the type go through f32
// vectors.
bool attention_uses_bf16(const AttentionShape& s);

}  // namespace aloft::cpu

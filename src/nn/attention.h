// Multi-head self-attention with one fused projection for queries, keys and values.
#pragma once

#include <optional>
#include <string>

#include "nn/linear.h"
#include "ops/attention.h"

namespace aloft::nn {

// What a MultiHeadAttention is, besides its extents.
struct AttentionOptions {
  std::int64_t kv_heads = 0;  // heads of keys and values; divides heads; 0: heads
  bool causal = true;         // position i sees positions up to i
  bool bias = true;           // of both projections
  // Unset: weights and biases as nn::Linear's; out_init, the output projection's weight:
  // weight_init.
  std::optional<Init> weight_init = {}, out_init = {}, bias_init = {};
  std::string qkv_name = "qkv", out_name = "proj";  // of the two projections
};

// Keys and values of the positions seen so far, of one layer: [B, longest, kv_heads, width].
struct KeyValueCache {
  VariablePtr keys, values;  // of one type, that in which attention computes
  VariablePtr starts = {};   // i32[B]: where each sequence begins, behind padding; null: at 0
};

// What cached attention of every kind does: appends keys and values, [B, n, kv_heads, width], of
// the positions from `position`, i32[], on to the cache, and lets each query of q [B, n, heads,
// width] attend to all up to its own -> [B, n, heads, width] in q's type. The cache is never
// converted as a whole: it decides the type in which attention computes.
Tensor attend_cached(const Tensor& q, const Tensor& keys, const Tensor& values,
                     const KeyValueCache& cache, const Tensor& position,
                     const AttentionCachedAttrs& attrs = {});

// Each position attends to those before it and itself, or to all. Children: qkv [(heads + 2
// kv_heads) width, dim] (queries, then keys, then values, each head after head) and proj [dim,
// heads width], where width = dim / heads.
class MultiHeadAttention : public Layer {
 public:
  static constexpr std::string_view kKind = "MultiHeadAttention";
  std::string_view kind() const override { return kKind; }

  // `dim`: features of a position. UserError E0211 unless heads divides dim and kv_heads divides
  // heads, E0210 unless both are positive.
  MultiHeadAttention(Module& parent, std::string_view name, std::int64_t dim, std::int64_t heads,
                     const AttentionOptions& options = {});

  Tensor operator()(Operand x) const;  // [B, T, dim] -> [B, T, dim]

  // Decoding: x [B, n, dim] are positions [position, position + n) of a causal sequence, position
  // i32[]. Writes their keys and values into the cache and attends to all up to each.
  Tensor cached(Operand x, const KeyValueCache& cache, const Tensor& position) const;

  // Heads of the queries, of keys and values, and features of a head.
  std::int64_t heads() const { return heads_; }
  std::int64_t kv_heads() const { return kv_heads_; }
  std::int64_t width() const { return width_; }

 private:
  std::int64_t heads_, kv_heads_, width_;
  bool causal_;

 public:
  Linear qkv, proj;  // the fused projection, and the one of the output
};

}  // namespace aloft::nn

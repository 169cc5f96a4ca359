// Multi-head self-attention with rotary positions, and projections of their own for queries, keys
// and values: the attention of Llama and of those after it.
#pragma once

#include "nn/attention.h"

namespace aloft::nn {

// What a RotaryAttention is, besides its extents.
struct RotaryAttentionOptions {
  std::int64_t kv_heads = 0;             // heads of keys and values; divides heads; 0: heads
  double base = 10000;                   // of the angles (ops/rotary.h)
  bool qkv_bias = false;                 // of the projections to queries, keys and values
  std::optional<Init> weight_init = {};  // unset: nn::Linear's; biases begin as 0
};

// Each position attends to those before it and itself. Children: q_proj [heads width, dim], k_proj
// and v_proj [kv_heads width, dim], o_proj [dim, heads width], where width = dim / heads; o_proj
// has no bias.
class RotaryAttention : public Layer {
 public:
  static constexpr std::string_view kKind = "RotaryAttention";
  std::string_view kind() const override { return kKind; }

  // `dim`: features of a position. UserError E0211 unless heads divides dim into an even width and
  // kv_heads divides heads, E0210 unless all are positive.
  RotaryAttention(Module& parent, std::string_view name, std::int64_t dim, std::int64_t heads,
                  const RotaryAttentionOptions& options = {});

  // x [B, T, dim] at the positions `places`, i32[T] -> [B, T, dim].
  Tensor operator()(Operand x, Operand places) const;

  // Decoding, as MultiHeadAttention::cached: `places` are position, position + 1, ...
  Tensor cached(Operand x, Operand places, const KeyValueCache& cache,
                const Tensor& position) const;

  // Heads of the queries, of keys and values, and features of a head.
  std::int64_t heads() const { return heads_; }
  std::int64_t kv_heads() const { return kv_heads_; }
  std::int64_t width() const { return width_; }

 private:
  Tensor heads_of(const Tensor& x, std::int64_t heads) const;

  std::int64_t heads_, kv_heads_, width_;
  double base_;

 public:
  // Its children: projections to queries, keys and values, and of the result.
  Linear q_proj, k_proj, v_proj, o_proj;
};

}  // namespace aloft::nn

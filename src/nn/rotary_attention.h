// Multi-head self-attention with rotary positions: the attention of Llama and of those after it.
// Its options are what those differ in.
#pragma once

#include <optional>
#include <string>

#include "nn/attention.h"
#include "nn/norm.h"

namespace aloft::nn {

// Norms of queries and keys, before they are turned.
enum class QueryKeyNorm {
  None,
  Heads,  // of each head, one weight [width] for all of them: Qwen3's
  Whole,  // of all heads together, a weight [heads width]: OLMo 2's
};

// How the projections to queries, keys and values lie.
enum class QkvLayout {
  Apart,    // three: q_proj, k_proj, v_proj
  Joined,   // one: all heads' queries, then the keys, then the values: Phi-3's
  ByHeads,  // one: query, key and value of each head after another: GPT-NeoX's
};

// What a RotaryAttention is, besides its extents.
struct RotaryAttentionOptions {
  std::int64_t kv_heads = 0;               // heads of keys and values; divides heads; 0: heads
  double base = 10000;                     // of the angles (ops/rotary.h)
  bool qkv_bias = false;                   // of the projections to queries, keys and values
  std::optional<Init> weight_init = {};    // unset: nn::Linear's; biases begin as 0
  std::int64_t width = 0;                  // features of a head; 0: dim / heads
  bool out_bias = false;                   // of the projection of the result
  std::int64_t turned = 0;                 // a head's first features, which turn; 0: all
  std::string scaling = {};                // of the angles (types/rotary_scaling.h)
  bool turns = true;                       // false: positions are not looked at
  QueryKeyNorm norm = QueryKeyNorm::None;  // of queries and keys
  RMSNormOptions norm_options = {};        // of q_norm and k_norm
  double scale = 0;                        // factor on the scores; 0: 1 / sqrt(width)
  std::int64_t window = 0;              // so many positions are seen, its own last; 0: all before
  double cap = 0;                       // scores s become cap tanh(s / cap); 0: they stay
  QkvLayout layout = QkvLayout::Apart;  // of the projections to queries, keys and values
  std::string qkv_name = "qkv_proj";    // of the projection, where it is one
  std::string out_name = "o_proj";      // of the projection of the result
};

// Each position attends to those before it and itself. Children: q_proj [heads width, dim], k_proj
// and v_proj [kv_heads width, dim], or one of all three; o_proj [dim, heads width]; q_norm and
// k_norm where there are such.
class RotaryAttention : public Layer {
 public:
  static constexpr std::string_view kKind = "RotaryAttention";
  std::string_view kind() const override { return kKind; }

  // `dim`: features of a position. UserError E0211 unless heads divides dim or a width is given, an
  // even number of features turns, kv_heads divides heads, and is heads where they lie by heads;
  // E0210 unless all are positive.
  RotaryAttention(Module& parent, std::string_view name, std::int64_t dim, std::int64_t heads,
                  const RotaryAttentionOptions& options = {});

  // x [B, T, dim] at the positions `places`, i32[T] or i32[B, T] -> [B, T, dim]. `lengths`, i32[B]:
  // how long each sequence is, where angles depend on it; not defined: as rotary() says.
  Tensor operator()(Operand x, Operand places, const Tensor& lengths = {}) const;

  // Decoding, as MultiHeadAttention::cached: `places` are position, position + 1, ...
  Tensor cached(Operand x, Operand places, const KeyValueCache& cache, const Tensor& position,
                const Tensor& lengths = {}) const;

  // Heads of the queries, of keys and values, and features of a head.
  std::int64_t heads() const { return heads_; }
  std::int64_t kv_heads() const { return kv_heads_; }
  std::int64_t width() const { return width_; }
  // Sequences that are longer turn by other angles; 0: all turn alike.
  std::int64_t first_length() const;

 private:
  // Of each position, [B, T, heads, width]; queries and keys are turned.
  struct Projected {
    Tensor q, k, v;
  };
  Projected projected(const Tensor& x, const Tensor& places, const Tensor& lengths) const;
  Projected apart(const Tensor& x) const;
  Projected cut(const Tensor& x) const;
  Tensor out(const Tensor& heads) const;

  RotaryAttentionOptions options_;
  std::int64_t heads_, kv_heads_, width_;

 public:
  // Its children: projections to queries, keys and values, or to all of them; of the result; norms.
  // What is not there is empty.
  std::optional<Linear> q_proj, k_proj, v_proj, qkv_proj, o_proj;
  std::optional<RMSNorm> q_norm, k_norm;  // of queries and keys
};

}  // namespace aloft::nn

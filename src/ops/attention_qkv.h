// Attention straight from a fused projection: queries, keys and values side by side in one tensor,
// as GPT-2's qkv layer gives them, and the output in the shape that the next projection wants. No
// transpose and no split is ever executed: the kernels read and write with strides.
#pragma once

#include "ops/declared.h"

namespace aloft {

// Options of attention_qkv(): the heads that lie side by side.
struct AttentionQkvAttrs {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;
  bool causal = true;
  double scale = 0;
  static constexpr auto fields() {
    using A = AttentionQkvAttrs;
    return FieldList{field("heads", &A::heads, "H, heads of the queries"),
                     field("kv_heads", &A::kv_heads, "KV, heads of keys and values; 0: H"),
                     field("causal", &A::causal, "position i sees positions up to i"),
                     field("scale", &A::scale, "factor on the scores; 0: 1 / sqrt(D)")};
  }
  // Heads of keys and values; heads in a row of qkv.
  std::int64_t kv() const { return kv_heads > 0 ? kv_heads : heads; }
  std::int64_t all_heads() const { return heads + 2 * kv(); }
};

// qkv [B, T, (H + 2 KV) D]: q's heads, then k's, then v's, each head D wide -> o [B, T, H D]. The
// op's second output is the log-sum-exp of each row of scores, f32 [B, H, T].
Tensor attention_qkv(Operand qkv, const AttentionQkvAttrs& attrs);

}  // namespace aloft

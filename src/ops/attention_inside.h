// What attention computes and never has whole, computed once more for who wants to see it.
#pragma once

#include <span>

#include "graph/tensor.h"
#include "ops/attention.h"

namespace aloft {

// Whether a call of the op has insides that inside_attention() gives.
bool has_attention_inside(Name op);

// Scores as the softmax takes them: scaled, capped where there is a cap, -inf where the mask hides
// the key; and the probabilities that it makes of them. [B, H, T, S], f32 (of f64 operands f64),
// from the operands of a call of `attention` or `attention_qkv`, with the current emitter.
struct AttentionInside {
  Tensor scores, probabilities;
};
AttentionInside inside_attention(Name op, const Attrs& attrs, std::span<const Tensor> in);

// [T, S]: which keys each query sees; undefined where it sees all.
Tensor seen_keys(const AttentionAttrs& attrs, const Tensor& q, const Tensor& k);

}  // namespace aloft

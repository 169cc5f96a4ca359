// Scaled dot-product attention, its gradient, and its form for decoding with a cache.
//
// Axes: B batch, T queries, S keys, H heads, KV key/value heads (KV divides H: head h reads
// key/value head h / (H / KV)), D width of a head.
#pragma once

#include "ops/declared.h"

namespace aloft {

// Options of attention().
struct AttentionAttrs {
  bool causal = true;
  double scale = 0;
  std::int64_t window = 0;
  double cap = 0;
  static constexpr auto fields() {
    using A = AttentionAttrs;
    return FieldList{field("causal", &A::causal, "query i sees the keys up to S - T + i"),
                     field("scale", &A::scale, "factor on the scores; 0: 1 / sqrt(D)"),
                     field("window", &A::window,
                           "a causal query sees so many keys at most, its own last; 0: all"),
                     field("cap", &A::cap, "scores s become cap tanh(s / cap); 0: they stay")};
  }
};

// Options of attention_cached().
struct AttentionCachedAttrs {
  double scale = 0;
  std::int64_t window = 0;
  double cap = 0;
  static constexpr auto fields() {
    using A = AttentionCachedAttrs;
    return FieldList{field("scale", &A::scale, "factor on the scores; 0: 1 / sqrt(D)"),
                     field("window", &A::window, "a query sees so many entries at most; 0: all"),
                     field("cap", &A::cap, "scores s become cap tanh(s / cap); 0: they stay")};
  }
};

// q [B, T, H, D], k and v [B, S, KV, D] -> o [B, T, H, D] = softmax(scale q k^T) v, the scores
// capped where there is a cap.
// The op's second output is the log-sum-exp of each row of scores, f32 [B, H, T]. The gradient
// takes its weights from it: as exact as scores in f32 are, so its relative error is about 2^-24
// times the largest |score| (2e-4 at scores of 3,500, 0.3 % at 35,000, 2 % at 350,000).
// There is no dropout on the weights: a model that wants it drops the output.
Tensor attention(Operand q, Operand k, Operand v, const AttentionAttrs& attrs = {});

// q [B, n, H, D], the cache's keys and values [B, Tmax, KV, D], length i32[]: the position of the
// first query. Query i sees the cache's first length + i + 1 entries, or the last of them that a
// window holds.
Tensor attention_cached(Operand q, Operand k, Operand v, Operand length,
                        const AttentionCachedAttrs& attrs = {});
// The same of sequences that begin at entries of their own, starts i32[B]: those before, and the
// queries that stand there, are padding. It is seen by nobody, and sees nothing: its results are 0.
Tensor attention_cached(Operand q, Operand k, Operand v, Operand length, Operand starts,
                        const AttentionCachedAttrs& attrs = {});

struct Product;  // ops/op.h

// Inside: the products of attention over `heads` (of all sequences together), queries [T, D]
// against keys [S, D]: two forward, five backward. Causal attention needs half of each square.
std::vector<Product> attention_products(std::int64_t heads, std::int64_t queries, std::int64_t keys,
                                        std::int64_t width, bool causal, bool backward);

}  // namespace aloft

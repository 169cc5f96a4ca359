// Attention without the matrix of scores, forward and backward: a block of queries against a block
// of keys at a time, softmax computed as blocks come (Milakov and Gimelshein 2018; Dao et al.
// 2022).
//
// bf16 and f16 run on the matrix units where the processor has them, bf16 in its dot products where
// it has those alone (attention_bf16.h says how they are cut), all else in f32 vectors: blocks of
// 64 keys by 64 queries, kept transposed, queries along the vectors, so that no reduction of a row
// of scores crosses lanes. Work is cut by (batch, head) and, forward, by stretches of queries:
// never by the number of threads, so the bits do not depend on it. Scratch is linear in the
// lengths.
#pragma once

#include <cstddef>
#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

// Where the heads of an operand lie: element d of head h at position t of batch element b is
// data[offset + b * batch + t * row + h * width + d].
struct HeadsLayout {
  std::int64_t offset = 0, batch = 0, row = 0;
};

struct AttentionShape {
  DType dtype = DType::F32;            // F32, BF16 or F16
  std::int64_t queries = 0, keys = 0;  // bounds
  std::int64_t heads = 1, kv_heads = 1, width = 0;
  bool causal = false;
  float scale = 1;
  std::int64_t window = 0;  // keys that a causal query sees at most; 0: all
  float cap = 0;            // scores s become cap tanh(s / cap); 0: they stay
  HeadsLayout q, k, v, o;   // gradients lie as their operands do
  int threads = 1;
};

// Actual extents of a run; a causal query i sees the keys up to keys - queries + i.
struct AttentionExtents {
  std::int64_t batch = 0, keys = 0;
};

struct AttentionForward {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* o = nullptr;
  float* lse = nullptr;  // [B, H, T], or null
};
std::size_t attention_forward_scratch(const AttentionShape& shape);
void run_attention_forward(const AttentionShape& shape, const AttentionExtents& actual,
                           const AttentionForward& operands, void* scratch);

struct AttentionBackward {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr, *d_o = nullptr;
  const float *lse = nullptr, *dlse = nullptr;  // dlse may be null
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
};
std::size_t attention_backward_scratch(const AttentionShape& shape);
void run_attention_backward(const AttentionShape& shape, const AttentionExtents& actual,
                            const AttentionBackward& operands, void* scratch);

}  // namespace aloft::cpu

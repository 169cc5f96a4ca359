// Attention of a few queries over many keys, as decoding with a cache asks for: one query at a
// time, every key and value read once, as it lies. The blocks of attention.h would prepare and
// multiply 64 queries for each one that is wanted. Forward only; the work is cut by (batch, head).
#pragma once

#include <cstddef>

#include "backends/cpu/attention/attention.h"

namespace aloft::cpu {

// Up to here one query at a time is faster than a block of them.
inline constexpr std::int64_t kFewQueries = 8;

std::size_t attention_decode_scratch(const AttentionShape& shape);
// As run_attention_forward; `operands.lse` must be null.
void run_attention_decode(const AttentionShape& shape, const AttentionExtents& actual,
                          const AttentionForward& operands, void* scratch);

}  // namespace aloft::cpu

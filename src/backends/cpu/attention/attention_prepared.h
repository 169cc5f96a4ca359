// Prepared attention and its gradient for the two ways in which ops hand over queries, keys and
// values: as three tensors, or packed side by side in one. Only the numbers of the operands differ.
#pragma once

#include <memory>
#include <optional>

#include "backends/cpu/attention/attention.h"
#include "runtime/kernel.h"
#include "types/call.h"

namespace aloft::cpu {

enum class AttentionOperands { Separate, Packed };

// Refuses f64 and statistics that are not f32.
std::optional<Refusal> accepts_attention(const CallSpec& call);
// `scale`, or where it is 0 the usual 1 / sqrt(width).
float attention_scale(double scale, std::int64_t width);

// in: q, k, v (or packed) ...; out: o, lse.
std::unique_ptr<Prepared> prepare_attention(const CallSpec& call, const AttentionShape& shape,
                                            AttentionOperands operands);
// in: q, k, v (or packed), o, lse, d_o and perhaps dlse; out: dq, dk, dv (or packed).
std::unique_ptr<Prepared> prepare_attention_grad(const CallSpec& call, const AttentionShape& shape,
                                                 AttentionOperands operands);

}  // namespace aloft::cpu

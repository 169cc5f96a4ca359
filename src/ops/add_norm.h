// Norms together with the addition before them, or behind their gradient: what fuse-norm makes of
// residual blocks. Nobody writes these ops by hand; their bodies are the ops that they stand for.
#pragma once

#include "ops/declared.h"

namespace aloft {

// add_layer_norm(a, b, scale, shift): layer_norm of a + b, then a + b itself as the last output.
// add_rms_norm(a, b, scale): likewise.
// layer_norm_grad_add(r, ...): layer_norm_grad of the other operands, with r added to its dx.
// rms_norm_grad_add(r, ...): likewise.
// Sums are rounded to their type before the norm reads them, and dx before r is added, so that the
// results are those of the separate ops to the bit.

struct FusedNorm {
  const char* norm;   // the op that is contained
  const char* fused;  // with the addition
  bool is_gradient;   // the addition comes last
};
inline constexpr FusedNorm kFusedNorms[] = {
    {"layer_norm", "add_layer_norm", false},
    {"rms_norm", "add_rms_norm", false},
    {"layer_norm_grad", "layer_norm_grad_add", true},
    {"rms_norm_grad", "rms_norm_grad_add", true},
};

}  // namespace aloft

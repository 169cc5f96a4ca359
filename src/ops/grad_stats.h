// What a training step must know of all its gradients before it uses any: norm, clipping factor,
// whether all are finite, and which is the first that is not.
#pragma once

#include <span>

#include "ops/declared.h"

namespace aloft {

struct GradStatsAttrs {
  double clip_norm = 0;
  Ints sought;
  static constexpr auto fields() {
    return FieldList{
        field("clip_norm", &GradStatsAttrs::clip_norm, "largest global L2 norm; 0: no clipping"),
        field("sought", &GradStatsAttrs::sought,
              "the gradients' numbers in the order in which a culprit is sought; empty: from 0")};
  }
};

struct GradStats;  // ops/step_tensors.h

// scale f32[]: what the gradients were multiplied with (loss scale x accumulated micro-batches).
// `sought`: their numbers in the order in which a culprit is sought, each once; empty: from 0 on.
GradStats grad_stats(Operand scale, std::span<const Tensor> gradients, double clip_norm = 0,
                     const Ints& sought = {});

// The same in two parts, to the bit, for gradients that do not live at the same time: the sum of
// squares of each of some gradients (f64[n]), and what all of them together mean.
Tensor grad_squares(std::span<const Tensor> gradients);
GradStats grad_verdict(Operand scale, std::span<const Tensor> squares, double clip_norm = 0,
                       const Ints& sought = {});

}  // namespace aloft

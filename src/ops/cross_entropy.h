// Cross-entropy of logits against class indices, and its gradient.
#pragma once

#include <string>

#include "ops/declared.h"

namespace aloft {

// Options of cross_entropy() and linear_cross_entropy().
struct CrossEntropyAttrs {
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  std::string reduction = "mean";
  static constexpr auto fields() {
    using A = CrossEntropyAttrs;
    return FieldList{
        field("ignore_index", &A::ignore_index, "rows with this target count for nothing"),
        field("label_smoothing", &A::label_smoothing,
              "probability taken from the target and spread over all classes, in [0, 1]"),
        field("reduction", &A::reduction, "\"mean\" over the rows that count, or \"sum\"")};
  }
};

// logits [..., V], integer targets [...] -> the loss, f32 []. A row loses
//   logsumexp(x) - (1 - s) x[target] - s mean(x),   s = label_smoothing.
// Where no row counts the mean is 0 with a gradient of 0 (PyTorch gives NaN): nothing to learn is
// not a failure. Any other target outside [0, V): eager UserError E0214, compiled NaN.
Tensor cross_entropy(Operand logits, Operand targets, const CrossEntropyAttrs& attrs = {});

}  // namespace aloft

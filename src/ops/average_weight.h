// How much of a weight's new value goes into the mean that an optimizer keeps of it.
#pragma once

#include "ops/declared.h"
#include "optim/options.h"

namespace aloft {

struct AverageWeightAttrs {
  std::string kind = "ema";
  double decay = 0.999;
  std::int64_t from = 0;
  static constexpr auto fields() {
    using A = AverageWeightAttrs;
    return FieldList{field("kind", &A::kind, "ema: a mean that fades; swa: of all alike"),
                     field("decay", &A::decay, "share of the old mean (ema)"),
                     field("from", &A::from, "updates before which the mean is the value")};
  }
  // 1 up to the update behind `from` others, so that the mean begins there as the value is.
  double weight_after(std::int64_t applied) const {
    if (applied <= from) return 1;
    return kind == "ema" ? 1 - decay : 1 / static_cast<double>(applied - from + 1);
  }
};

// The weight of the value behind the update made after `applied` (i64[]) applied ones: f32[]; 0
// where `finite` (i32[]) is 0, and the update was not.
Tensor average_weight(Operand applied, Operand finite, const Averaging& averaging);

}  // namespace aloft

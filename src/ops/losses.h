// Losses of predictions against targets, computed and returned in f32 (f64 for f64); predictions
// and targets may be of different float types. Reductions:
// "mean" over all elements, "sum", "none"; kl_div also "batchmean", over the first dimension.
#pragma once

#include <string>

#include "ops/declared.h"

namespace aloft {

struct LossAttrs {
  std::string reduction = "mean";
  static constexpr auto fields() {
    return FieldList{
        field("reduction", &LossAttrs::reduction, "\"mean\", \"sum\", \"none\" or \"batchmean\"")};
  }
};

struct HuberLossAttrs {
  double delta = 1;
  std::string reduction = "mean";
  static constexpr auto fields() {
    using A = HuberLossAttrs;
    return FieldList{field("delta", &A::delta, "distance at which squares turn into lines"),
                     field("reduction", &A::reduction, "\"mean\", \"sum\" or \"none\"")};
  }
};

struct KlDivAttrs {
  bool log_target = false;
  std::string reduction = "mean";
  static constexpr auto fields() {
    using A = KlDivAttrs;
    return FieldList{
        field("log_target", &A::log_target, "targets are logarithms too"),
        field("reduction", &A::reduction, "\"mean\", \"sum\", \"none\" or \"batchmean\"")};
  }
};

// Options of nll_loss().
struct NllLossAttrs {
  std::int64_t ignore_index = -100;
  std::string reduction = "mean";
  static constexpr auto fields() {
    using A = NllLossAttrs;
    return FieldList{
        field("ignore_index", &A::ignore_index, "rows with this target count for nothing"),
        field("reduction", &A::reduction,
              "\"mean\" over the rows that count, \"sum\" or \"none\"")};
  }
};

// Of d = x - target: d^2.
Tensor mse_loss(Operand x, Operand target, const std::string& reduction = "mean");
// |d|.
Tensor l1_loss(Operand x, Operand target, const std::string& reduction = "mean");
// d^2 / 2 for |d| <= delta, else delta (|d| - delta / 2). UserError E0203 unless delta > 0.
Tensor huber_loss(Operand x, Operand target, double delta = 1,
                  const std::string& reduction = "mean");
// softplus(x) - x target: the binary cross-entropy of sigmoid(x).
Tensor bce_with_logits(Operand x, Operand target, const std::string& reduction = "mean");
// target (log(target) - x), 0 where the target is 0; with log_target, which says that the targets
// are logarithms, e^target (target - x). x holds logarithms of probabilities.
Tensor kl_div(Operand x, Operand target, const std::string& reduction = "mean",
              bool log_target = false);
// -x[target] of rows x [..., classes] of log-probabilities. Where no row counts the mean is 0. A
// target that is no class and not ignore_index: eager UserError E0214, compiled NaN.
Tensor nll_loss(Operand x, Operand target, const NllLossAttrs& attrs = {});

}  // namespace aloft

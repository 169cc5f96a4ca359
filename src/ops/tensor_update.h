// The update of a formula of tensors (optim/tensor_formula.h), in ops that exist.
#pragma once

#include <string_view>
#include <vector>

#include "ops/update.h"

namespace aloft {

// One parameter of such an update, in f32; step() puts the new values where the old ones were.
struct TensorStep {
  Tensor p, g;                          // the gradient unscaled and clipped
  std::vector<Tensor> states, numbers;  // numbers: f32[] each
  bool decays = false, is_rest = false;
};
struct TensorFormula {
  std::string_view name;  // "muon"
  void (*step)(const Attrs& options, TensorStep& step);
};
// Of every optimizer that is one (tensor_formulas.cpp.in).
const std::vector<TensorFormula>& tensor_formulas();

// As emit_update(). Masters are not split: no op reads such.
UpdateResults emit_tensor_update(const UpdateRule& rule, const UpdateOperands& operands,
                                 const UpdateForm& form);

}  // namespace aloft

// A variable has several values where it is updated between two reads: what both modes do with the
// gradients of each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "graph/tensor.h"
#include "runtime/buffer.h"
#include "types/variable.h"

namespace aloft {

// Whether a step changes it: a parameter that is not frozen.
inline bool is_trainable(const Variable& v) {
  return v.cls == StateClass::Parameter && v.requires_grad;
}

// What a loss scale is called, of an optimizer or of a loop's own scaler; "scaler.scale.1" where
// there are several.
inline constexpr std::string_view kLossScale = "scaler.scale";
// Whether it is one.
bool is_loss_scale(const Variable& v);

// While one lives, gradients are taken by a step that divides them by the optimizer's loss scale
// and shows them to nobody before: a loss that was multiplied with a loss scale has no place there.
class WholeStep {
 public:
  WholeStep();
  ~WholeStep();
  WholeStep(const WholeStep&) = delete;
  WholeStep& operator=(const WholeStep&) = delete;
  static bool is_taken();

 private:
  bool saved_;
};

// Where those gradients are added: in the backward phase, under no precision policy.
Where where_values_are_added(const Where& where);

// The sum of what is defined of `parts`, oldest first; zeros of `type` where nothing is.
Tensor sum_of_values(std::span<const Tensor> parts, const TensorType& type);

// UserError E0322: a gradient would be zero for every variable it is asked for.
UserError depends_on_none(const TensorType& target);

// UserError E0808: a whole step is given a loss that was multiplied with a loss scale.
UserError is_scaled_already();
// UserError E0323: a variable is given a value of another type.
UserError changes_type(const Variable& variable, const TensorType& given);

// Floats as numbers of a variable's type, rounded to nearest even where that is low: f32, bf16 or
// f16, else UserError E0323.
void write_floats(const Buffer& to, DType dtype, std::span<const float> from);
// UserError E0323: what is read or written as floats is none.
UserError is_no_float(DType dtype);

// UserError E0325: there is no variable where one is needed; `headline` says where.
UserError no_variable(const std::string& headline);
// UserError E0325: a variable without memory is used for its value.
UserError has_no_memory(const Variable& variable);

}  // namespace aloft

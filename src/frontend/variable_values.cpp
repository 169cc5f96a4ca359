#include "frontend/variable_values.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/constant.h"
#include "scalar/float_formats.h"

namespace aloft {

bool is_loss_scale(const Variable& v) {
  const std::string_view name = v.name.str();
  return v.cls == StateClass::Control && name.starts_with(kLossScale) &&
         (name.size() == kLossScale.size() || name[kLossScale.size()] == '.');
}

namespace {
thread_local bool is_step_whole = false;
}  // namespace

WholeStep::WholeStep() : saved_(is_step_whole) { is_step_whole = true; }
WholeStep::~WholeStep() { is_step_whole = saved_; }
bool WholeStep::is_taken() { return is_step_whole; }

Where where_values_are_added(const Where& where) {
  Where w = where;
  w.phase = Phase::Backward;
  w.policy = {};
  return w;
}

Tensor sum_of_values(std::span<const Tensor> parts, const TensorType& type) {
  Tensor sum;
  for (const Tensor& part : parts)
    if (part.is_defined()) sum = sum.is_defined() ? add(sum, part) : part;
  return sum.is_defined() ? sum : full(type.shape, 0.0, type.dtype);
}

UserError depends_on_none(const TensorType& target) {
  return UserError("E0322", "the loss depends on none of the parameters that it should train")
      .saw("a " + target.str() + " whose gradient is zero for every one of them")
      .need("a loss computed from the optimizer's parameters, outside NoGrad and not detached")
      .advice("check that the optimizer was made for the model that computed the loss");
}

UserError is_scaled_already() {
  return UserError("E0808", "the loss is multiplied with a loss scale already")
      .saw("minimize() of what a scaler, or amp::scale_loss(), gave for a loss")
      .need(
          "the loss itself: a whole step multiplies it with the optimizer's loss scale, and "
          "divides "
          "by that alone")
      .advice(
          "scaler.scale(loss).backward() and scaler.step(optimizer); or value_and_grad(), and "
          "apply_gradients() with gradients that the scaler has divided");
}

UserError changes_type(const Variable& variable, const TensorType& given) {
  return UserError("E0323", "an update changes the type of '" + variable.name.str() + "'")
      .saw(given.str())
      .need(variable.type.str())
      .advice("cast or reshape the new value");
}

UserError no_variable(const std::string& headline) {
  return UserError("E0325", headline)
      .saw("an empty VariablePtr, as Module::parameter() gives for a name that it does not know")
      .need("a parameter of the model")
      .advice("compare the name with those of model.parameters()");
}

UserError has_no_memory(const Variable& variable) {
  return UserError("E0325", "the variable '" + variable.name.str() + "' has no memory")
      .saw("a " + variable.type.str() + " without a buffer")
      .need("one that a module has made, by add_parameter() or add_buffer()");
}

UserError is_no_float(DType dtype) {
  return UserError("E0323", "state is read and written as floats")
      .saw(std::string(name_of(dtype)))
      .need("a floating-point type");
}

void write_floats(const Buffer& to, DType dtype, std::span<const float> from) {
  switch (dtype) {
    case DType::F32:
      std::ranges::copy(from, to.write<float>().begin());
      return;
    case DType::BF16:
      std::ranges::transform(from, to.write<scalar::Bf16>().begin(),
                             [](float x) { return scalar::bf16_of(x); });
      return;
    case DType::F16:
      std::ranges::transform(from, to.write<scalar::F16>().begin(),
                             [](float x) { return scalar::f16_of(x); });
      return;
    default:
      throw is_no_float(dtype);
  }
}

}  // namespace aloft

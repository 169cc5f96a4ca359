#include "frontend/variable_values.h"

#include "ops/binary.h"
#include "ops/constant.h"

namespace aloft {

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

}  // namespace aloft

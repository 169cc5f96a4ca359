#include "frontend/eager.h"

#include "base/error.h"
#include "frontend/eager_emitter.h"
#include "frontend/variable_values.h"

namespace aloft {

namespace {
Tensor in_session(const Tensor& t) { return Tensor(&eager_session(), t.id(), t.held()); }

template <class T>
Tensor from_values(DType dtype, const std::vector<T>& values, const Shape& shape) {
  if (static_cast<std::int64_t>(values.size()) != shape.max_numel())
    throw UserError("E0313", "the number of values does not fit the shape")
        .saw(std::to_string(values.size()) + " values for " + shape.str())
        .need("as many values as the product of the extents");
  return in_session(eager().from_host({dtype, shape}, values.data()));
}
}  // namespace

Tensor from_floats(const std::vector<float>& values, const Shape& shape) {
  return from_values(DType::F32, values, shape);
}
Tensor from_doubles(const std::vector<double>& values, const Shape& shape) {
  return from_values(DType::F64, values, shape);
}
Tensor from_ints(const std::vector<std::int32_t>& values, const Shape& shape) {
  return from_values(DType::I32, values, shape);
}
Tensor from_int64s(const std::vector<std::int64_t>& values, const Shape& shape) {
  return from_values(DType::I64, values, shape);
}

Tensor grad_of(const VariablePtr& parameter) {
  if (!parameter) throw no_variable("the gradient of no parameter is asked for");
  const Tensor g = eager().gradient_of(parameter);
  return g.is_defined() ? in_session(g) : g;
}

}  // namespace aloft

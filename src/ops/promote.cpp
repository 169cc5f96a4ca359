#include "ops/promote.h"

#include <cmath>

#include "ops/cast.h"
#include "ops/op.h"
#include "scalar/float_formats.h"

namespace aloft {

Operand as_type(Operand x, DType t) {
  if (x.tensor.dtype() == t) return x;
  Where where = current_where();
  if (!where.pass) where.pass = "meet";  // not what the user asked for
  Scope scope(where);
  x.tensor = cast(x, t);
  return x;
}

bool reaches(DType t, std::int64_t value) {
  return !is_integer(t) || wrapped(value, t).whole() == value;
}

bool holds(DType t, double value) {
  if (!is_low(t) || std::isnan(value)) return true;
  const double near = t == DType::BF16 ? scalar::f64_of(scalar::bf16_of(value))
                                       : scalar::f64_of(scalar::f16_of(value));
  return near == value;
}

void meet(Operand& a, Operand& b) {
  const DType t = promoted(a.tensor.dtype(), b.tensor.dtype());
  a = as_type(a, t);
  b = as_type(b, t);
}

}  // namespace aloft

#include "types/promote.h"

#include <algorithm>

namespace aloft {

DType promoted(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_low(a) && is_low(b)) return DType::F32;
  if (size_of(a) == 1 && size_of(b) == 1) return DType::I32;
  return std::min(a, b);  // types of one kind are listed from wide to narrow
}

DType promoted(DType tensor, NumberKind number) {
  if (number == NumberKind::Real) return as_float(tensor);
  return tensor == DType::Bool ? DType::I64 : tensor;
}

}  // namespace aloft

// Tensors made from nothing: filled, counted.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct FullAttrs {
  Shape shape;
  double value = 0;
  DType dtype = DType::F32;
  static constexpr auto fields() {
    using A = FullAttrs;
    return FieldList{field("shape", &A::shape, "shape of the result"),
                     field("value", &A::value, "every element"),
                     field("dtype", &A::dtype, "element type")};
  }
};

struct IotaAttrs {
  std::int64_t count = 0;
  std::int64_t start = 0;
  std::int64_t step = 1;
  DType dtype = DType::I32;
  static constexpr auto fields() {
    using A = IotaAttrs;
    return FieldList{field("count", &A::count, "number of elements"),
                     field("start", &A::start, "first element"),
                     field("step", &A::step, "difference of neighbours"),
                     field("dtype", &A::dtype, "element type")};
  }
};

// Every element is `value`.
Tensor full(const Shape& shape, double value, DType dtype = DType::F32);
// start, start + step, ... : [count]
Tensor iota(std::int64_t count, DType dtype = DType::I32, std::int64_t start = 0,
            std::int64_t step = 1);

}  // namespace aloft

// Random tensors. Every number is a function of the random state `rng` (i64[3]: seed,
// step, micro-batch), of the call's key and of the element's index: recomputation, thread counts
// and resumed runs draw the same ones. The key is the place's: module path and op. From the
// thread's random_state() (frontend/random.h) a place draws other numbers each time, until the
// state changes. From any other rng, an argument for example, it draws the same numbers each time:
// whoever draws twice from one passes a second one.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct RandomUniformAttrs {
  Shape shape;
  double low = 0;
  double high = 1;
  DType dtype = DType::F32;
  std::int64_t key = 0;
  static constexpr auto fields() {
    using A = RandomUniformAttrs;
    return FieldList{
        field("shape", &A::shape, "shape of the result"), field("low", &A::low, "smallest value"),
        field("high", &A::high, "bound of the values; rounding may reach it"),
        field("dtype", &A::dtype, "element type"), field("key", &A::key, "identity of the call")};
  }
};

struct RandomNormalAttrs {
  Shape shape;
  double mean = 0;
  double deviation = 1;
  DType dtype = DType::F32;
  std::int64_t key = 0;
  static constexpr auto fields() {
    using A = RandomNormalAttrs;
    return FieldList{field("shape", &A::shape, "shape of the result"),
                     field("mean", &A::mean, "mean of the distribution"),
                     field("deviation", &A::deviation, "standard deviation"),
                     field("dtype", &A::dtype, "element type"),
                     field("key", &A::key, "identity of the call")};
  }
};

// Inside: the key of a draw of `op` from `rng` at the current place in the program.
std::int64_t draw_key(Name op, Operand rng);

// Uniform in [low, high); rounding to dtype may reach high. UserError E0203 unless both and
// their distance are finite, and low is not above high.
Tensor random_uniform(Operand rng, const Shape& shape, double low = 0, double high = 1,
                      DType dtype = DType::F32);
// Normal, of this mean and standard deviation. UserError E0203 for a negative deviation.
Tensor random_normal(Operand rng, const Shape& shape, double mean = 0, double deviation = 1,
                     DType dtype = DType::F32);

}  // namespace aloft

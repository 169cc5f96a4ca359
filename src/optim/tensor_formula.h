// How an update is written that is no formula of elements: means of rows and columns, norms,
// products of matrices. Once too, over its tensor type T; ops/tensor_update.cpp makes ops of it, a
// program's own, which passes fuse and whose meaning in double is theirs. Such a formula has
//
//   kStates, kNumbers, numbers()   as optim/formula.h has them; there are no flags
//   state_shape(k, shape, is_rest) of state k, for a parameter of that shape; a state that is not
//                                  kept has no elements: {0}
//   kLeastStates                   values that it keeps of a weight of a large matrix, at least
//   step(e)                        updated(new value, new states...), a member: its options may
//                                  decide what is computed
//
// and no kernel of its own. Beside operators a T has the ops of these names: sqrt, abs, maximum,
// where, greater, less, sum, max, matmul, reshape, cast.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "optim/formula.h"
#include "types/shape.h"

namespace aloft::optim {

// The states of a parameter that keeps none of this one.
inline const Shape kNotKept = {0};

// What a step reads of one tensor, all in full precision.
template <class T, std::size_t kStates, std::size_t kNumbers>
struct TensorElement {
  T p, g;                           // the parameter; its gradient, unscaled and clipped
  std::array<T, kStates> states;    // before the step
  std::array<T, kNumbers> numbers;  // of numbers(): single ones
  bool decays = false;              // the weight decay holds for it, and is not 0
  bool is_rest = false;             // OptimizerSpec::rest names it
  Shape shape;                      // of the parameter
};

template <class F>
concept OfTensors = requires {
  F::kLeastStates;
};

// The square of the length, of the whole tensor or along axes that stay with length 1.
template <class T>
T squared_norm(const T& x) {
  return sum(x * x);
}
template <class T>
T squared_norm(const T& x, std::int64_t axis) {
  return sum(x * x, {axis}, true);
}

}  // namespace aloft::optim

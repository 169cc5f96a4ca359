// How the formula of an update is written: once, over its number type (scalar/terms.h). Its meaning
// in double, the vector kernels and its text in the documentation all come from it.
//
// A formula is a struct with its options as members, listed by fields(), and
//
//   kStates     names of the states that it keeps of each element; kNotNegative: of those of them
//               that are sums or means of squares, or sizes (where there are any)
//   kNeedsWholeStates   true where states in fewer bits would ruin it (FormulaRecord says why)
//   kNumbers    names of numbers(): what it needs of a step, the same for all elements
//   kFlags      names of flags(): conditions of a step, behind `decays`, which is a tensor's
//   step(e)     the new value and the new states of one element
//
// Options that say which states are kept (adamw.h, rmsprop.h) choose between several formulas, each
// with a kName of its own.
//
// One that needs sums over each tensor (lamb.h) also has
//
//   squares(e)        what is squared and added up over the tensor's elements; kSquares: its names
//   kTensorNumbers    names of tensor_numbers(): what follows from those sums for the tensor, and,
//                     where it asks for them, from numbers() and whether the tensor decays
//
// The sums are an instruction of their own, before the update: whoever holds a part of a tensor
// adds its sums to those of the other parts.
//
// One that keeps numbers of each tensor from step to step (novograd.h) also has
//
//   kTensorStates     names of those, which are f32 in whatever format its other states are
//   tensor_states()   their new values, from the sums, numbers() and their old values;
//                     tensor_numbers() takes the new ones too
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "scalar/terms.h"
#include "types/field_list.h"
#include "types/limits.h"

namespace aloft::optim {

// What formulas are written with, besides operators; numbers find these, as terms do.
using scalar::abs;
using scalar::sign;
using scalar::sqrt;
using scalar::where;

// One option of a formula: a member, an attribute of the formula's op, a key of recipes.
template <class F, class T>
struct Option {
  std::string_view key;  // of the attribute, and optimizer.<key> of a recipe
  T F::*member;
  Limits limits;  // of a recipe; a program may exceed the upper one where it is included
  std::string_view meaning;
  std::string_view resumed;  // what another value means for a run that goes on
  // Of recipes, where it is an element of a list: optimizer.<list>, in the order of fields().
  std::string_view list = {};
};
template <class F, class T>
Option<F, T> option(std::string_view key, T F::*member, Limits limits, std::string_view meaning,
                    std::string_view resumed, std::string_view list = {}) {
  return {key, member, std::move(limits), meaning, resumed, list};
}

// Options that do not fit together: `key` needs `other` to be as `need` says.
struct OptionMisfit {
  std::string_view key, other, need;
};

// What a step is made with.
struct UpdateStep {
  double lr = 0;             // its rate
  std::int64_t applied = 0;  // updates that the parameters had before it
  double weight_decay = 0;   // of the parameters that decay
};

// What a formula reads of one element: values, or the terms that stand for them.
//   p         the parameter, in full precision
//   g         its gradient, unscaled and clipped
//   states    its states before the step
//   numbers, flags, tensor   numbers(), `decays` and flags(), tensor_numbers()
template <class P, class G, class States, class Numbers, class Flags, class TensorNumbers>
struct Element {
  P p;
  G g;
  States states;
  Numbers numbers;
  Flags flags;
  TensorNumbers tensor;
};
// Clang before 17 does not deduce aggregates.
template <class P, class G, class States, class Numbers, class Flags, class TensorNumbers>
Element(P, G, States, Numbers, Flags, TensorNumbers)
    -> Element<P, G, States, Numbers, Flags, TensorNumbers>;

// What step() gives: the new parameter, and the new states in their order.
template <class... V>
constexpr auto updated(V... values) {
  return std::tuple(values...);
}

// The first where the condition holds, else the second: what differs between a kind's formulas.
template <bool kHolds, class A, class B>
constexpr auto only_if(const A& a, const B& b) {
  if constexpr (kHolds)
    return a;
  else
    return b;
}

template <class F>
concept NeedsSums = requires {
  F::kTensorNumbers;
};

template <class F>
concept KeepsTensorStates = requires {
  F::kTensorStates;
};

// Of an element.
template <class F>
constexpr int state_count() {
  return static_cast<int>(F::kStates.size());
}
template <class F>
constexpr int tensor_state_count() {
  if constexpr (KeepsTensorStates<F>)
    return static_cast<int>(F::kTensorStates.size());
  else
    return 0;
}
template <class F>
constexpr int number_count() {
  return static_cast<int>(F::kNumbers.size());
}
// `decays`, and those of a step.
template <class F>
constexpr int flag_count() {
  return 1 + static_cast<int>(F::kFlags.size());
}
template <class F>
constexpr int tensor_number_count() {
  if constexpr (NeedsSums<F>)
    return static_cast<int>(F::kTensorNumbers.size());
  else
    return 0;
}

// Where an element's parts stand among the operands of its terms.
template <class F>
struct Places {
  static constexpr int kP = 0, kG = 1, kStates = 2, kNumbers = kStates + state_count<F>(),
                       kTensor = kNumbers + number_count<F>(),
                       kCount = kTensor + tensor_number_count<F>();
};

// The element of terms.
template <class F>
constexpr auto element_of_terms() {
  using P = Places<F>;
  return Element{scalar::Var<P::kP>(),
                 scalar::Var<P::kG>(),
                 scalar::vars<P::kStates, state_count<F>()>(),
                 scalar::vars<P::kNumbers, number_count<F>()>(),
                 scalar::flags<flag_count<F>()>(),
                 scalar::vars<P::kTensor, tensor_number_count<F>()>()};
}

// How many sums a formula needs of each tensor.
template <class F>
constexpr int sum_count() {
  if constexpr (NeedsSums<F>)
    return std::tuple_size_v<decltype(F::squares(element_of_terms<F>()))>;
  else
    return 0;
}

// Whether those sums read the states: squares of the parameter and the gradient alone do not.
template <class F>
constexpr bool sums_read_states() {
  if constexpr (NeedsSums<F>) {
    for (const std::string_view name : F::kSquares)
      if (name != "p" && name != "g") return true;
  }
  return false;
}

}  // namespace aloft::optim

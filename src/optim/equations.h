// Equations of a formula of tensors (optim/tensor_formula.h) for people: kEquations, lines
// "name = value" beside its step(), which its record has as text. docs/optimizers.md prints them,
// says what their functions mean, and tests/ops/equations_test.cpp evaluates them beside step().
//
//   name'            a new value, of a state or of p; other names are parts of what follows
//   of matrices:     the lines behind it hold for what the formula takes for matrices; likewise
//                    the two other headings
//   5 times: a = ...; b = ...
//   # ...            is not evaluated
#pragma once

#include <string_view>

namespace aloft::optim {

inline constexpr std::string_view kOfMatrices = "of matrices:", kOfOthers = "of other tensors:",
                                  kOfAll = "of all:";

}  // namespace aloft::optim

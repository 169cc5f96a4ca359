// Tile functions in double and in integers from formulas (scalar/terms.h), the same from which
// formula_tiles-inl.h makes those in vectors.
#pragma once

#include <utility>

#include "backends/cpu/elements/elementwise.h"

namespace aloft::cpu {

// out[j] = formula(in[0][j], ..., p[0], ...) of kIn operands and kNumbers of the op's numbers.
// Formula is a captureless type: it is made where it is called.
template <class T, int kIn, int kNumbers, class Formula>
void number_tile(const T* const* in, T* out, std::int64_t n, [[maybe_unused]] const double* p) {
  [&]<int... i, int... k>(std::integer_sequence<int, i...>, std::integer_sequence<int, k...>) {
    for (std::int64_t j = 0; j < n; ++j)
      out[j] = static_cast<T>(Formula()(in[i][j]..., static_cast<T>(p[k])...));
  }
  (std::make_integer_sequence<int, kIn>(), std::make_integer_sequence<int, kNumbers>());
}
template <class T, int kIn, int kNumbers = 0, class Formula>
TileOf<T> number_tile_of(Formula) {
  return number_tile<T, kIn, kNumbers, Formula>;
}

// Of integers, from a function of its own.
template <std::int64_t (*kFunction)(std::int64_t)>
void whole_tile(const std::int64_t* const* in, std::int64_t* out, std::int64_t n, const double*) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = kFunction(in[0][i]);
}
template <std::int64_t (*kFunction)(std::int64_t, std::int64_t)>
void whole_tile(const std::int64_t* const* in, std::int64_t* out, std::int64_t n, const double*) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = kFunction(in[0][i], in[1][i]);
}

}  // namespace aloft::cpu

// Which low type `auto` means on this machine, and whether the one asked for pays here.
#pragma once

#include <functional>
#include <string>

#include "precision/recipe.h"

namespace aloft {

// What a measurement found for `auto` precision: GFLOP/s of a large product.
struct MeasuredRates {
  double f32_gflops = 0, bf16_gflops = 0;
  std::string source = {};  // "measured now", "as measured before (FILE)"
};
// "f32 410, bf16 1210 GFLOP/s (2.95x), measured now"
std::string describe(const MeasuredRates& rates);

// Replaces `auto` by the better measured type, with the reason; the same recipe otherwise. Warns
// where a low type was asked for that this machine multiplies more slowly than fp32.
PrecisionRecipe settle_precision(const PrecisionRecipe& recipe,
                                 const std::function<MeasuredRates()>& measure);

}  // namespace aloft

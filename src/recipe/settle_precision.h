// Which low type `auto` means on this machine, and whether the one asked for pays here.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "plan/choices.h"
#include "precision/recipe.h"
#include "types/capability.h"

namespace aloft {

// What a measurement found for `auto` precision: GFLOP/s of a large product.
struct MeasuredRates {
  double f32_gflops = 0, bf16_gflops = 0;
  std::string source = {};  // "measured now", "as measured before (FILE)"
};
// "f32 410, bf16 1210 GFLOP/s (2.95x), measured now"
std::string describe(const MeasuredRates& rates);

// Replaces `auto` by what `choices` records, or else by the better measured type, which they then
// record, with the reason; the same recipe otherwise. Warns where a low type was asked for that is
// not there (`here`), or that this machine multiplies more slowly than fp32. UserError E0829 where
// what is recorded is no precision, or of a type that is not there.
PrecisionRecipe settle_precision(const PrecisionRecipe& recipe, Choices& choices,
                                 const std::function<MeasuredRates()>& measure,
                                 const Capability& here = {});
// The name of that choice, and its value for a precision that is settled: level and type.
inline constexpr std::string_view kPrecisionChoice = "precision";
MeasuredChoice precision_choice(const PrecisionRecipe& settled);

}  // namespace aloft

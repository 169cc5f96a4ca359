// Which low type `auto` means on this machine, and whether the one asked for pays here.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/choices.h"
#include "precision/recipe.h"
#include "types/capability.h"

namespace aloft {

struct LayerErrors;  // recipe/choose_layers.h

// What a measurement found for `auto` precision: GFLOP/s of a large product.
struct MeasuredRates {
  double f32_gflops = 0, bf16_gflops = 0;
  std::string source = {};  // "measured now", "as measured before (FILE)"
  double f16_gflops = 0;    // 0: none of its own, and computed in f32
};
// "f32 410, bf16 1210 GFLOP/s (2.95x), measured now"
std::string describe(const MeasuredRates& rates);

// Half-width storage pays a little even where the products are no faster; the bar leaves room for
// noise in the measurement.
inline constexpr double kWorthIt = 1.05;

// How what is `auto` or `adaptive` is measured; what is empty cannot be.
struct Measuring {
  std::function<MeasuredRates()> rates = {};
  // Each layer's errors in these types.
  std::function<std::vector<LayerErrors>(std::span<const DType> low)> layers = {};
};

// Replaces `auto` by what `choices` records, or else by the better measured type, which they then
// record, with the reason; `adaptive` by the types that the layers' errors leave; the same recipe
// otherwise. Warns where a low type was asked for that is not there (`here`), or that this machine
// multiplies more slowly than fp32, and where what is recorded was chosen for another budget.
// UserError E0829 where what is recorded is no precision, or of a type that is not there.
PrecisionRecipe settle_precision(const PrecisionRecipe& recipe, Choices& choices,
                                 const Measuring& measuring, const Capability& here = {});
// The name of that choice, and its value for a precision that is settled: level, type and layers.
inline constexpr std::string_view kPrecisionChoice = "precision";
// What is to be chosen, as MeasuredChoice::asked records it: "auto", "adaptive error_budget=0.02".
std::string asked_of(const PrecisionRecipe& recipe);
MeasuredChoice precision_choice(const PrecisionRecipe& settled);

}  // namespace aloft

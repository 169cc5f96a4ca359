// What `adaptive` precision makes of measured errors: the type of each layer.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "plan/choices.h"
#include "precision/recipe.h"
#include "types/dtype.h"

namespace aloft {

struct MeasuredRates;  // recipe/settle_precision.h

// How far a layer is from f32 where it is computed in a low type: the largest relative error (L2)
// of what it hands on, parts of 1; infinite where the type overflows.
struct LayerErrors {
  struct OfType {
    double forward = 0, backward = 0;
    // NaN is worse than any number.
    bool is_within(double budget) const { return forward <= budget && backward <= budget; }
  };
  std::string layer;  // module path
  std::map<DType, OfType> by_type = {};
  bool has_products = true;  // ops of the class Narrow
};

// The recipe with a type for each layer that it does not list itself: the fastest of those within
// its budget, of those in which the machine multiplies faster than in f32, by `rates`. That holds
// for layers without products too: they move half the bytes in any low type, but what is not of the
// type of the products around them is cast on its way. Where no layer with products is low nothing
// is gained but casts, and no other layer becomes low either. O0 where no layer is low.
PrecisionRecipe choose_layers(const PrecisionRecipe& asked, std::span<const LayerErrors> errors,
                              const MeasuredRates& rates);

// For people: "error budget 1 %: bf16 in 20 layers, fp32 in 2 ...".
std::string describe_choice(const PrecisionRecipe& chosen, std::span<const LayerErrors> errors,
                            double budget);

// As a choice records them, and back: "bf16 forward" of a layer; what is not finite is infinite.
Figures figures_of(std::span<const LayerErrors> errors);

}  // namespace aloft

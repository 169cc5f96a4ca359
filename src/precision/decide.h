// The precision decision: a pure function of what an op is, what the back end has, what the recipe
// says and the phase. The pass that inserts casts only asks it; `explain precision` prints it.
#pragma once

#include <span>
#include <string_view>

#include "precision/recipe.h"
#include "precision/rules.h"
#include "scalar/loss_scaler.h"
#include "types/capability.h"
#include "types/dtype.h"
#include "types/numeric.h"
#include "types/phase.h"

namespace aloft {

struct DecisionQuery {
  Numeric numeric = Numeric::Follow;
  std::string_view op = {};
  Phase phase = Phase::Forward;
  std::string_view layer = {};  // the module path
  // Types of the inputs that may be cast: state that is updated (running statistics) stays out.
  std::span<const DType> inputs = {};
  // Names of the parameters among the inputs, or, in the backward phase, of the forward node's:
  // those that the recipe lists matter.
  std::span<const std::string_view> parameters = {};
  // The op is a loss, or works on the value of one: whoever asks follows losses through Follow ops,
  // or else `loss + 0.01 * penalty` would be narrowed under O2.
  bool is_loss = false;
  bool is_norm = false;
  Capability capability = {};
};

// Of the names of an op's parameters the one that decides: the first that the recipe denies, else
// the first that it allows; empty: it lists none.
std::string_view listed_parameter(std::span<const std::string_view> names,
                                  const PrecisionRecipe& recipe);

// The recipe must be resolved (no `auto` left).
Decision decide(const DecisionQuery& query, const PrecisionRecipe& recipe);

// How a trained parameter is kept.
struct WeightStorage {
  DType stored = DType::F32;
  bool has_master = false;  // an f32 copy in the optimizer's state is the one that is updated
  std::string_view reason = "";
};
WeightStorage weight_storage(std::string_view parameter, bool is_norm,
                             const PrecisionRecipe& recipe, const Capability& capability = {});

// Why masters cannot be split into the bf16 weight and 16 more bits under this recipe; empty: they
// can. A recipe with an `auto` left is judged by what is settled.
std::string_view split_master_problem(const PrecisionRecipe& recipe);

// The same of weights that are rounded at random: bf16 ones that have no masters.
std::string_view stochastic_rounding_problem(const PrecisionRecipe& recipe);

// The loss scaler of a recipe. Under Auto: dynamic where O1 or O2 uses f16 in the forward or the
// backward phase, else none. Whatever it is, gradients are checked on every step.
scalar::ScalerRule scaler_rule(const PrecisionRecipe& recipe);

}  // namespace aloft

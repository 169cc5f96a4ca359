// What an optimizer refuses before it holds, and amp::prepare before it changes, anything.
#pragma once

#include "base/error.h"
#include "frontend/optimizer.h"

namespace aloft {

// UserError E0801: there is nothing to train. E0809: a pattern matches no parameter, frozen ones
// included. E0814: numbers out of range, all of them. E0816: an early update that cannot be early.
// E0819: no update rule. E0325: a parameter is null, has no memory or is given twice. E0311: one is
// not f32, bf16 or f16.
void check_optimizer(const OptimizerSpec& spec, const std::vector<VariablePtr>& parameters,
                     const scalar::ScalerRule& scaler);

// Says on stderr why each of optim/foreign_switches.h that is on changes nothing.
void explain_switches(const OptimizerSpec& spec);

// E0801, also for a step in which everything is frozen.
UserError nothing_to_train();

}  // namespace aloft

// What the host does behind a step that was skipped: it says so where amp::Options::verbosity asks
// for it, and training stops where skipping does not help any more.
#pragma once

#include <cstdint>

#include "frontend/optimizer.h"

namespace aloft {

// DivergedError E0810 where the optimizer has skipped ScalerRule::give_up_after steps in a row;
// `culprit` is the last step's. For loops that read a step's numbers themselves.
void give_up_if_hopeless(const Optimizer& optimizer, std::int32_t culprit);

// The same of a step that is being recorded or has run: eagerly at once, in a compiled program
// behind each of its runs. Overflows of a loss that amp::initialize was told of are said.
void give_up_if_hopeless(const StepResult& step, const Optimizer& optimizer);
// By the steps that another scaler of the optimizer's rule has skipped in a row.
void give_up_if_hopeless(const StepResult& step, const Optimizer& optimizer,
                         const ScalerVariables& scaler);

}  // namespace aloft

// Switches of torch.optim that optimizers take and that change nothing here, each with the reason.
#pragma once

#include <string_view>

#include "optim/spec.h"

namespace aloft::optim {

// Why `foreach` and `fused` are always so.
inline constexpr std::string_view kOneSweep = "every update is one sweep over all tensors";
// Why `capturable` is.
inline constexpr std::string_view kAsksNothing =
    "a step asks the host nothing, and is part of the compiled plan";
// Why `differentiable` is refused where it is true.
inline constexpr std::string_view kNotDifferentiated =
    "an update is not differentiated: no gradient goes through it to what was before";

struct ForeignSwitch {
  std::string_view name;
  bool OptimizerSpec::*member;
  std::string_view why;
};
inline constexpr ForeignSwitch kForeignSwitches[] = {
    {"foreach", &OptimizerSpec::foreach, kOneSweep},
    {"fused", &OptimizerSpec::fused, kOneSweep},
    {"capturable", &OptimizerSpec::capturable, kAsksNothing},
};

}  // namespace aloft::optim

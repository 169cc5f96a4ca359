// Which calls a device has kernels for, as passes/low_kernels.h asks.
#pragma once

#include "passes/low_kernels.h"
#include "runtime/device.h"

namespace aloft {

inline TakesCall taker(Device& device) {
  return [&device](const CallSpec& call) {
    return choose_kernel(device.backend(), call).kernel != nullptr;
  };
}

}  // namespace aloft

// Devices by name: the one place that knows every back end.
#pragma once

#include <string_view>
#include <vector>

#include "backends/device_kind.h"

namespace aloft {

// Every kind that this build has, in the order of catalog.inc.
const std::vector<DeviceKind>& device_kinds();
// "cpu", "sim", "sim:910B3,memory=1GiB": the same device for the same name, as long as the process
// lives. UserError E0332 where there is none. Thread-safe.
Device& open_device(std::string_view name);
// What ALOFT_DEVICE names, or the cpu: for use_device().
Device& chosen_device();

}  // namespace aloft

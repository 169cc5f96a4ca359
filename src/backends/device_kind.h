// What a back end says of itself to whoever chooses a device by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.h"

namespace aloft {

struct DeviceKind {
  std::string_view name;              // "sim": what names of its devices begin with, up to a colon
  std::string_view summary;           // a line for people
  std::vector<std::string> variants;  // "sim:910B3": what else can be asked for
  // A new device of that name, which lives as long as the process. UserError E0332.
  Device& (*open)(std::string_view name);
};

}  // namespace aloft

// The device that a thread makes models on and calls ops on, where nothing else is said.
#pragma once

#include <string_view>

#include "runtime/device.h"

namespace aloft {

// The one of threads that chose none. Set at start, by whoever knows the concrete back ends (the
// command line, include/aloft/aloft.h); opened when it is asked for first.
void set_default_device(Device& (*open)());
void set_default_device(Device& device);
// How a device is opened by its name, for a recipe that names one; set by the same.
void set_device_opener(Device& (*open)(std::string_view name));
// UserError E0332 where there is none of this name, EnvironmentError E0403 where no opener was set.
Device& device_named(std::string_view name);
// This thread's. EnvironmentError E0403 where none was set, and what opening it throws.
Device& current_device();

// While one lives, this thread's current device is another:
//
//   const DeviceScope on(open_device("sim:910B3"));
//   Gpt2 model(config);                                     // its variables lie there
class DeviceScope {
 public:
  explicit DeviceScope(Device& device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device* before_;
};

}  // namespace aloft

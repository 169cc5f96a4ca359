// The device that a thread makes models on and calls ops on, where nothing else is said.
#pragma once

#include "runtime/device.h"

namespace aloft {

// The one of threads that chose none. Set at start, by whoever knows the concrete back ends (the
// command line, include/aloft/aloft.h); opened when it is asked for first.
void set_default_device(Device& (*open)());
void set_default_device(Device& device);
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

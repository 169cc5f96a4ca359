#include "runtime/current_device.h"

#include <atomic>

#include "base/error.h"

namespace aloft {
namespace {
std::atomic<Device*> of_the_process = nullptr;
std::atomic<Device& (*)()> opener = nullptr;
thread_local Device* of_this_thread = nullptr;
}  // namespace

void set_default_device(Device& device) { of_the_process = &device; }

void set_default_device(Device& (*open)()) {
  opener = open;
  of_the_process = nullptr;
}

namespace {
Device* opened() {
  const auto open = opener.load();
  Device* const device = open ? &open() : nullptr;
  of_the_process = device;
  return device;
}
}  // namespace

Device& current_device() {
  Device* device = of_this_thread;
  if (!device) device = of_the_process.load(std::memory_order_acquire);
  if (!device) device = opened();
  if (!device)
    throw EnvironmentError("E0403", "no device was chosen")
        .advice("include <aloft/aloft.h>, or call use_device(chosen_device) first");
  return *device;
}

DeviceScope::DeviceScope(Device& device) : before_(of_this_thread) { of_this_thread = &device; }
DeviceScope::~DeviceScope() { of_this_thread = before_; }

}  // namespace aloft

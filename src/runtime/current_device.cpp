#include "runtime/current_device.h"

#include <atomic>
#include <string>

#include "base/error.h"

namespace aloft {
namespace {
std::atomic<Device*> of_the_process = nullptr;
std::atomic<Device& (*)()> opener = nullptr;
std::atomic<Device& (*)(std::string_view)> by_name = nullptr;
thread_local Device* of_this_thread = nullptr;
}  // namespace

void set_default_device(Device& device) { of_the_process = &device; }

void set_default_device(Device& (*open)()) {
  opener = open;
  of_the_process = nullptr;
}

void set_device_opener(Device& (*open)(std::string_view)) { by_name = open; }

Device& device_named(std::string_view name) {
  const auto open = by_name.load();
  if (!open)
    throw EnvironmentError("E0403", "nobody opens devices by their names")
        .saw("'" + std::string(name) + "'")
        .advice("include <aloft/aloft.h>, or call set_device_opener(open_device) first");
  return open(name);
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

#include "runtime/current_device.h"

#include <atomic>

#include "base/error.h"

namespace aloft {
namespace {
std::atomic<Device*> of_the_process = nullptr;
thread_local Device* of_this_thread = nullptr;
}  // namespace

void set_default_device(Device& device) { of_the_process = &device; }

Device& current_device() {
  Device* device = of_this_thread;
  if (!device) device = of_the_process.load(std::memory_order_acquire);
  if (!device)
    throw EnvironmentError("E0403", "no device was chosen")
        .advice("include <aloft/aloft.h>, or call use_device(cpu_device()) first");
  return *device;
}

DeviceScope::DeviceScope(Device& device) : before_(of_this_thread) { of_this_thread = &device; }
DeviceScope::~DeviceScope() { of_this_thread = before_; }

}  // namespace aloft

// The software device, as the catalogue of back ends lists it.
#include <cstdlib>
#include <exception>

#include "backends/cpu/cpu_backend.h"
#include "backends/device_kind.h"
#include "backends/sim/own_thread.h"
#include "backends/sim/sim_device.h"
#include "base/log.h"

namespace aloft {
namespace {

// As long as the process: blocks, kernels and threads count on a device to the end.
std::vector<sim::SimDevice*>& opened() {
  static auto& all = *new std::vector<sim::SimDevice*>;
  return all;
}

// What is under way when the process ends must not outlive what it uses. Where a device's own
// thread ends it (a library that calls exit), nothing can be waited for.
void finish_all() {
  if (sim::is_own_thread) return;
  for (sim::SimDevice* device : opened()) try {
      device->synchronize();
    } catch (const std::exception& e) {  // nobody is left to catch it
      log_error("{}: {}", device->name(), e.what());
    }
}

Device& open_sim(std::string_view name) {
  if (opened().empty()) std::atexit(finish_all);
  opened().push_back(new sim::SimDevice(std::string(name), sim::parse_sim(name), cpu_device()));
  return *opened().back();
}

}  // namespace

DeviceKind sim_kind() {
  std::vector<std::string> variants;
  for (const std::string& profile : sim::profile_names()) variants.push_back("sim:" + profile);
  return {"sim", "an accelerator in software, with the kernels of the cpu", std::move(variants),
          open_sim};
}

}  // namespace aloft

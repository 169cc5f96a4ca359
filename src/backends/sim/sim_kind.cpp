// The software device, as the catalogue of back ends lists it.
#include "backends/cpu/cpu_backend.h"
#include "backends/device_kind.h"
#include "backends/sim/sim_device.h"

namespace aloft {

DeviceKind sim_kind() {
  std::vector<std::string> variants;
  for (const std::string& profile : sim::profile_names()) variants.push_back("sim:" + profile);
  return {"sim", "an accelerator in software, with the kernels of the cpu", std::move(variants),
          [](std::string_view name) -> Device& {
            // Its blocks and threads count on it to the end of the process.
            return *new sim::SimDevice(std::string(name), sim::parse_sim(name), cpu_device());
          }};
}

}  // namespace aloft

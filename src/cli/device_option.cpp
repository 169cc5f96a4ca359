#include "cli/device_option.h"

#include <string>

#include "backends/catalog.h"
#include "frontend/eager.h"

namespace aloft::cli {

void add_device_option(CLI::App& app) {
  app.add_option_function<std::string>(
      "--device", [](const std::string& name) { use_device(open_device(name)); },
      "what to run on: cpu, sim, sim:910B3 (aloft devices)");
}

}  // namespace aloft::cli

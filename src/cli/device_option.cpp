#include "cli/device_option.h"

#include <string>

#include "backends/catalog.h"
#include "frontend/eager.h"

namespace aloft::cli {
namespace {
bool is_given = false;  // of this command line
}

void add_device_option(CLI::App& app) {
  app.add_option_function<std::string>(
      "--device",
      [](const std::string& name) {
        use_device(open_device(name));
        is_given = true;
      },
      "a device of `aloft devices` (default: recipe, ALOFT_DEVICE, cpu)");
}

void use_device_of(const Recipe& recipe) {
  if (is_given) return;
  if (Device* device = device_of(recipe)) use_device(*device);
}

}  // namespace aloft::cli

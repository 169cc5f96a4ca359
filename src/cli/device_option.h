// --device, of every verb that computes.
#pragma once

#include <CLI/CLI.hpp>

namespace aloft::cli {

// What the verb runs on: "cpu", "sim", "sim:910B3"; without the option what ALOFT_DEVICE names, or
// the cpu. UserError E0332 while the line is read where there is no such device.
void add_device_option(CLI::App& app);

}  // namespace aloft::cli

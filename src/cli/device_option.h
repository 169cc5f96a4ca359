// --device, of every verb that computes, and train.device of the recipes that they read.
#pragma once

#include <CLI/CLI.hpp>

#include "recipe/recipe.h"

namespace aloft::cli {

// What the verb runs on: "cpu", "sim", "sim:910B3"; without the option what the recipe says, or
// else ALOFT_DEVICE, or the cpu. UserError E0332 while the line is read where there is none.
void add_device_option(CLI::App& app);
// The recipe's device, where the command line names none. UserError E0332.
void use_device_of(const Recipe& recipe);

}  // namespace aloft::cli

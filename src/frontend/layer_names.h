// What lists of layers may name in a model.
#pragma once

#include <string>
#include <vector>

#include "frontend/module.h"

namespace aloft {

// The layers of `model`, as lists of layers call them: its modules' paths, kRootLayer for itself,
// and the parts of them that are no modules (Module::inner_layers()).
std::vector<std::string> layer_names(nn::Module& model);

// The first of them, for a message: "a, b, ...".
std::string some_of(std::vector<std::string> names);

}  // namespace aloft

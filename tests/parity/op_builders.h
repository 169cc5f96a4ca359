// What each operator fixture is in Aloft's own calls: PyTorch's conventions translated.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "graph/tensor.h"
#include "parity/fixture.h"

namespace aloft::parity {

using Named = std::map<std::string, Tensor>;
// (the fixture's attributes under PyTorch's names, its inputs) -> its outputs.
using Build = std::function<Named(const Json& attrs, const Named& in)>;

// By the fixture's "op".
const std::map<std::string, Build>& op_builders();

}  // namespace aloft::parity

// What each operator fixture is in Aloft's own calls: PyTorch's conventions translated.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/tensor.h"
#include "parity/fixture.h"

namespace aloft::parity {

using Named = std::map<std::string, Tensor>;
// (the fixture's attributes under PyTorch's names, its inputs) -> its outputs.
using Build = std::function<Named(const Json& attrs, const Named& in)>;

// By the fixture's "op".
const std::map<std::string, Build>& op_builders();

// A call of Aloft's op of that name: attributes under its own names, inputs in the fixture's order,
// and the first output, "y". "compute" among the attributes is the type that float inputs are cast
// to.
Tensor call_op(const std::string& op, const Json& attrs, const std::vector<Tensor>& inputs);

}  // namespace aloft::parity

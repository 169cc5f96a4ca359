// Turns an op's samples into concrete operands, reproducibly.
#pragma once

#include <string>
#include <vector>

#include "ops/op.h"

namespace aloft::testing {

// Operands of one sample; a float operand gets `dtype` unless its type is fixed. The values are
// rounded to the element type, so that every side starts from the same numbers.
std::vector<HostArray> make_inputs(const Sample& sample, DType dtype, std::uint64_t seed);

// All samples of an op.
std::vector<Sample> samples_of(const OpDef& op);

// "softmax {axis=-1} (f32[3,17])": the reproducer printed by a failure.
std::string case_text(const OpDef& op, const Sample& sample, const std::vector<HostArray>& in);

}  // namespace aloft::testing

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

// The samples whose float operands all hold special values, where others hold numbers. None of an
// op that sums products: where the terms leave f32's range, whether the end is inf or NaN is a
// matter of their order, which the meaning in double does not have. Those have samples of their
// own.
std::vector<Sample> special_samples_of(const OpDef& op);
bool sums_products(const OpDef& op);

// Whether gradients pass the op, and are not 0 wherever they exist.
bool has_slope(const OpDef& op);

// A stream of small random numbers, and of small types: ranks to 4, extents from 0 to 3.
struct Draw {
  std::uint64_t n = 0;
  std::int64_t operator()(std::int64_t below);
};
TensorType random_type(Draw& draw);

// "softmax {axis=-1} (f32[3,17])": the reproducer printed by a failure.
std::string case_text(const OpDef& op, const Sample& sample, const std::vector<HostArray>& in);

}  // namespace aloft::testing

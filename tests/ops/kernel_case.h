// A sample of an op as a call: its operands, and the results that it means, in double.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/host_array.h"
#include "ops/op.h"
#include "ops/samples.h"
#include "types/call.h"

namespace aloft::testing {

struct Case {
  const OpDef& op;
  const Sample& sample;
  std::vector<HostArray> in;
  CallSpec call;
  std::vector<HostArray> want;
  DType dtype = DType::F32;           // of the float operands
  std::vector<std::int64_t> lengths;  // of each result: terms_of
  double scale = 0;                   // largest magnitude among operands and results
};

// Nullopt where the op does not take these types.
std::optional<Case> make_case(const OpDef& op, const Sample& sample, DType dtype);

// The largest magnitude in `a` that is a number like others; at least `scale`.
double largest_magnitude(const HostArray& a, double scale);

// How many terms an element of a call's result `out` sums, at most: from what the op says of
// itself (its products, axes, windows, what it is), and from how much smaller the result is than
// the operands. 1 where nothing is summed, and a copy is exact.
std::int64_t terms_of(const OpDef& op, const CallSpec& call, std::size_t out);

}  // namespace aloft::testing

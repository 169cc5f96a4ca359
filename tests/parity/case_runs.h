// One case of an operator fixture, and the three ways to compute it: every op by its meaning in
// double, compiled for the cpu back end, and op by op on it.
#pragma once

#include <string>
#include <vector>

#include "parity/fixture.h"

namespace aloft::parity {

// Inputs, outputs, cotangents and gradients, without the case's name.
struct Case {
  const Json& info;
  Arrays arrays;                      // "in.x", "out.y", "dy.y", "grad.x"
  std::vector<std::string> operands;  // the inputs, then the cotangents: "in.x", ..., "dy.y"

  Case(const Fixture& fixture, const Json& info);
};

// "out.y" and "grad.x" of the sum over outputs of <output, cotangent>.
Arrays run_in_double(const Case& c);
Arrays run_compiled(const Case& c);
Arrays run_eagerly(const Case& c);

// The case's name as a test's.
std::string test_name(const Json& info);

}  // namespace aloft::parity

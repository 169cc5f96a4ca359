// The engine of every element-wise kernel: broadcasts, widens tiles, calls the op's function on
// them, rounds the result into place. An op supplies a function on f32 tiles and one in double.
#pragma once

#include <memory>
#include <span>

#include "backends/cpu/operands.h"
#include "runtime/kernel.h"

namespace aloft::cpu {

// out[j] = f(in[0][j], in[1][j], ...; p) for j in [0, n). p: the op's numbers (a slope, bounds).
using TileF32 = void (*)(const float* const* in, float* out, std::int64_t n, const double* p);
using TileF64 = void (*)(const double* const* in, double* out, std::int64_t n, const double* p);

struct ElementwiseCode {
  TileF32 f32 = nullptr;  // floats up to f32, bool and 8-bit integers
  TileF64 f64 = nullptr;  // f64 and the wider integers, which a double holds up to 2^53
  std::int64_t cost = 1;  // of one element, in units of an addition
  std::array<double, 4> numbers{};
};

// output 0 = code(inputs, broadcast). Integer results saturate, NaN becomes 0, as HostArray says.
std::unique_ptr<Prepared> prepare_elementwise(const CallSpec& call, const ElementwiseCode& code);

}  // namespace aloft::cpu

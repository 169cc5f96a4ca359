// Logic on bools and questions about floats; any and all are reductions (kernels/reduce.cpp).
#include <cmath>
#include <cstdint>

#include "backends/cpu/elements/elementwise.h"

namespace aloft::cpu {
namespace {

struct Row {
  const char* name;  // "cpu.OP"
  TileF32 f32;
  TileF64 f64;
};

#define LOOP(T, ...)                                              \
  [](const T* const* in, T* out, std::int64_t n, const double*) { \
    for (std::int64_t i = 0; i < n; ++i) out[i] = __VA_ARGS__;    \
  }
#define BOTH(name, ...) \
  { name, LOOP(float, __VA_ARGS__), LOOP(double, __VA_ARGS__) }
const Row kRows[] = {
    BOTH("cpu.logical_and", in[0][i] != 0 && in[1][i] != 0),
    BOTH("cpu.logical_or", in[0][i] != 0 || in[1][i] != 0),
    BOTH("cpu.logical_xor", (in[0][i] != 0) != (in[1][i] != 0)),
    BOTH("cpu.logical_not", in[0][i] == 0),
    BOTH("cpu.is_nan", std::isnan(in[0][i])),
    BOTH("cpu.is_inf", std::isinf(in[0][i])),
    BOTH("cpu.is_finite", std::isfinite(in[0][i])),
};
#undef LOOP
#undef BOTH

std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  const Row& row = row_of(kRows, call);
  return prepare_elementwise(call, {row.f32, row.f64, 2});
}

}  // namespace

std::vector<Kernel> logical_kernels() { return elementwise_kernels(kRows, prepare); }

}  // namespace aloft::cpu

// Element-wise functions of one tensor (the rows of ops/unary.cpp).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/unary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <string_view>

#include "backends/cpu/elements/formula_tiles-inl.h"
#include "backends/cpu/elements/formula_tiles.h"
#include "scalar/arithmetic.h"
#include "scalar/integers.h"

// ROW(name, cost of an element in units of an addition, tile of integers or null)
#define ALOFT_UNARIES(ROW)                            \
  ROW(neg, 1, whole_tile<scalar::wrapping_neg>)       \
  ROW(abs, 1, whole_tile<scalar::wrapping_abs>)       \
  ROW(sign, 1, whole_tile<scalar::int_sign>)          \
  ROW(square, 1, whole_tile<scalar::wrapping_square>) \
  ROW(sqrt, 2, nullptr)                               \
  ROW(rsqrt, 2, nullptr)                              \
  ROW(reciprocal, 1, nullptr)                         \
  ROW(exp, 4, nullptr)                                \
  ROW(expm1, 5, nullptr)                              \
  ROW(log, 5, nullptr)                                \
  ROW(log1p, 6, nullptr)                              \
  ROW(sin, 5, nullptr)                                \
  ROW(cos, 5, nullptr)                                \
  ROW(tan, 10, nullptr)                               \
  ROW(asin, 5, nullptr)                               \
  ROW(acos, 5, nullptr)                               \
  ROW(atan, 5, nullptr)                               \
  ROW(sinh, 8, nullptr)                               \
  ROW(cosh, 6, nullptr)                               \
  ROW(tanh, 6, nullptr)                               \
  ROW(erf, 8, nullptr)                                \
  ROW(floor, 1, nullptr)                              \
  ROW(ceil, 1, nullptr)                               \
  ROW(round, 1, nullptr)
#define ALOFT_VALUE(name) [](auto x) { return scalar::name(x); }

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

FloatTiles unary_tiles(std::string_view op) {
#define ROW(name, cost, whole) \
  if (op == #name) return formula_tiles<1>(ALOFT_VALUE(name));
  ALOFT_UNARIES(ROW)
#undef ROW
  return {};
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
namespace {

HWY_EXPORT(unary_tiles);

struct Row {
  const char* name;  // "cpu.OP"
  TileF64 f64;
  std::int64_t cost;
  TileI64 i64;  // null: floats only
};

#define ROW(name, cost, whole) \
  {"cpu." #name, number_tile_of<double, 1>(ALOFT_VALUE(name)), cost, whole},
const Row kRows[] = {ALOFT_UNARIES(ROW)};
#undef ROW

std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  const Row& row = row_of(kRows, call);
  const FloatTiles tiles = HWY_DYNAMIC_DISPATCH(unary_tiles)(call.op.str());
  ElementwiseCode code{tiles.f32, row.f64, row.cost};
  code.low = tiles;
  code.i64 = row.i64;
  return prepare_elementwise(call, code);
}

}  // namespace

std::vector<Kernel> unary_kernels() { return elementwise_kernels(kRows, prepare); }

}  // namespace aloft::cpu
#endif  // HWY_ONCE

// Element-wise functions of one tensor (the rows of ops/unary.cpp).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/unary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <string_view>

#include "backends/cpu/elements/elementwise.h"
#include "backends/cpu/vectors/functions-inl.h"
#include "backends/cpu/vectors/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

#define TILE(name, ...)                                                          \
  template <class T>                                                             \
  void name##_tile(const T* const* in, T* out, std::int64_t n, const double*) {  \
    map(in[0], out, n, [](FloatV x) HWY_ATTR -> FloatV { return __VA_ARGS__; }); \
  }
TILE(neg, hn::Neg(x))
TILE(abs, hn::Abs(x))
TILE(sign, keep_nan(x, hn::IfThenElse(hn::Eq(x, hn::Zero(Floats())), hn::Zero(Floats()),
                                      hn::CopySignToAbs(constant(1), x))))
TILE(square, hn::Mul(x, x))
TILE(sqrt, hn::Sqrt(x))
TILE(rsqrt, hn::Div(constant(1), hn::Sqrt(x)))
TILE(reciprocal, hn::Div(constant(1), x))
TILE(exp, exp_of(x))
TILE(expm1, expm1_of(x))
TILE(log, log_of(x))
TILE(log1p, log1p_of(x))
TILE(sin, sin_of(x))
TILE(cos, cos_of(x))
TILE(tan, tan_of(x))
TILE(asin, hn::Asin(Floats(), x))
TILE(acos, hn::Acos(Floats(), x))
TILE(atan, hn::Atan(Floats(), x))
TILE(sinh, sinh_of(x))
TILE(cosh, cosh_of(x))
TILE(tanh, tanh_of(x))
TILE(erf, erf_of(x))
TILE(floor, hn::Floor(x))
TILE(ceil, hn::Ceil(x))
TILE(round, hn::Round(x))
#undef TILE

FloatTiles unary_tiles(std::string_view op) {
#define ROW(name) \
  if (op == #name) return FLOAT_TILES(name##_tile)
  ROW(neg);
  ROW(abs);
  ROW(sign);
  ROW(square);
  ROW(sqrt);
  ROW(rsqrt);
  ROW(reciprocal);
  ROW(exp);
  ROW(expm1);
  ROW(log);
  ROW(log1p);
  ROW(sin);
  ROW(cos);
  ROW(tan);
  ROW(asin);
  ROW(acos);
  ROW(atan);
  ROW(sinh);
  ROW(cosh);
  ROW(tanh);
  ROW(erf);
  ROW(floor);
  ROW(ceil);
  ROW(round);
#undef ROW
  return {};
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>

#include "scalar/integers.h"
#include "scalar/math.h"

namespace aloft::cpu {
namespace {

HWY_EXPORT(unary_tiles);

struct Row {
  const char* name;  // "cpu.OP"
  TileF64 f64;
  std::int64_t cost;
  TileI64 i64 = nullptr;  // null: floats only
};

template <std::int64_t (*kFunction)(std::int64_t)>
void whole(const std::int64_t* const* in, std::int64_t* out, std::int64_t n, const double*) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = kFunction(in[0][i]);
}

#define WIDE(...)                                                           \
  [](const double* const* in, double* out, std::int64_t n, const double*) { \
    for (std::int64_t i = 0; i < n; ++i) {                                  \
      const double x = in[0][i];                                            \
      out[i] = __VA_ARGS__;                                                 \
    }                                                                       \
  }
const Row kRows[] = {
    {"cpu.neg", WIDE(-x), 1, whole<scalar::wrapping_neg>},
    {"cpu.abs", WIDE(std::abs(x)), 1, whole<scalar::wrapping_abs>},
    {"cpu.sign", WIDE(scalar::sign(x)), 1, whole<scalar::int_sign>},
    {"cpu.square", WIDE(x* x), 1, whole<scalar::wrapping_square>},
    {"cpu.sqrt", WIDE(std::sqrt(x)), 2},
    {"cpu.rsqrt", WIDE(1 / std::sqrt(x)), 2},
    {"cpu.reciprocal", WIDE(1 / x), 1},
    {"cpu.exp", WIDE(std::exp(x)), 4},
    {"cpu.expm1", WIDE(std::expm1(x)), 5},
    {"cpu.log", WIDE(std::log(x)), 5},
    {"cpu.log1p", WIDE(std::log1p(x)), 6},
    {"cpu.sin", WIDE(std::sin(x)), 5},
    {"cpu.cos", WIDE(std::cos(x)), 5},
    {"cpu.tan", WIDE(std::tan(x)), 10},
    {"cpu.asin", WIDE(std::asin(x)), 5},
    {"cpu.acos", WIDE(std::acos(x)), 5},
    {"cpu.atan", WIDE(std::atan(x)), 5},
    {"cpu.sinh", WIDE(std::sinh(x)), 8},
    {"cpu.cosh", WIDE(std::cosh(x)), 6},
    {"cpu.tanh", WIDE(std::tanh(x)), 6},
    {"cpu.erf", WIDE(std::erf(x)), 8},
    {"cpu.floor", WIDE(std::floor(x)), 1},
    {"cpu.ceil", WIDE(std::ceil(x)), 1},
    {"cpu.round", WIDE(std::nearbyint(x)), 1},
};
#undef WIDE

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

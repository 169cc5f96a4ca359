// Element-wise arithmetic and comparison of two tensors (the rows of ops/binary.cpp and
// ops/compare.cpp).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/binary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <string_view>

#include "backends/cpu/elements/elementwise.h"
#include "backends/cpu/vectors/map-inl.h"
#include "backends/cpu/vectors/power-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

#define TILE(name, ...)                                                                           \
  void name##_tile(const float* const* in, float* out, std::int64_t n, const double*) {           \
    map(in[0], in[1], out, n, [](FloatV a, FloatV b) HWY_ATTR -> FloatV { return __VA_ARGS__; }); \
  }
// 1 where the mask holds, else 0: the tile of a bool.
#define MASK_TILE(name, ...) TILE(name, hn::IfThenElseZero(__VA_ARGS__, hn::Set(Floats(), 1.0f)))
TILE(add, hn::Add(a, b))
TILE(sub, hn::Sub(a, b))
TILE(mul, hn::Mul(a, b))
TILE(div, hn::Div(a, b))
// Both operands are written out: the processor's own maximum forgets one of two NaNs.
TILE(maximum, hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Ge(a, b)), a, b))
TILE(minimum, hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Le(a, b)), a, b))
TILE(pow, pow_of(a, b))
TILE(squared_difference, hn::Mul(hn::Sub(a, b), hn::Sub(a, b)))
MASK_TILE(equal, hn::Eq(a, b))
// Highway's own Ne is false where either is NaN.
MASK_TILE(not_equal, hn::Not(hn::Eq(a, b)))
MASK_TILE(less, hn::Lt(a, b))
MASK_TILE(less_equal, hn::Le(a, b))
MASK_TILE(greater, hn::Gt(a, b))
MASK_TILE(greater_equal, hn::Ge(a, b))
#undef TILE
#undef MASK_TILE

TileF32 binary_tile(std::string_view op) {
#define ROW(name) \
  if (op == #name) return name##_tile
  ROW(add);
  ROW(sub);
  ROW(mul);
  ROW(div);
  ROW(maximum);
  ROW(minimum);
  ROW(pow);
  ROW(squared_difference);
  ROW(equal);
  ROW(not_equal);
  ROW(less);
  ROW(less_equal);
  ROW(greater);
  ROW(greater_equal);
#undef ROW
  return nullptr;
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "scalar/integers.h"
#include "scalar/math.h"

namespace aloft::cpu {
namespace {

HWY_EXPORT(binary_tile);

struct Row {
  const char* name;  // "cpu.OP"
  TileF64 f64;
  std::int64_t cost;
  TileI64 i64 = nullptr;  // null: floats only
  TileF32 f32 = nullptr;  // where the vector form would not be exact enough
};

// Ordinary loops over tiles of T.
#define LOOP(T, ...)                                              \
  [](const T* const* in, T* out, std::int64_t n, const double*) { \
    for (std::int64_t i = 0; i < n; ++i) {                        \
      const T a = in[0][i], b = in[1][i];                         \
      out[i] = __VA_ARGS__;                                       \
    }                                                             \
  }
#define WHOLE(...) LOOP(std::int64_t, __VA_ARGS__)
// Of a comparison, which reads the same in all types.
#define SAME(name, ...) \
  { name, LOOP(double, __VA_ARGS__), 1, WHOLE(__VA_ARGS__) }

// The sign follows b, as in Python; a multiple of b gives 0.
template <class T>
T floor_mod(T a, T b) {
  const T r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

const Row kRows[] = {
    {"cpu.add", LOOP(double, a + b), 1, WHOLE(scalar::wrapping_add(a, b))},
    {"cpu.sub", LOOP(double, a - b), 1, WHOLE(scalar::wrapping_sub(a, b))},
    {"cpu.mul", LOOP(double, a* b), 1, WHOLE(scalar::wrapping_mul(a, b))},
    {"cpu.div", LOOP(double, a / b), 2},
    {"cpu.maximum", LOOP(double, std::isnan(a) || a >= b ? a : b), 1, WHOLE(a >= b ? a : b)},
    {"cpu.minimum", LOOP(double, std::isnan(a) || a <= b ? a : b), 1, WHOLE(a <= b ? a : b)},
    {"cpu.pow", LOOP(double, std::pow(a, b)), 12, WHOLE(scalar::wrapping_pow(a, b))},
    SAME("cpu.equal", a == b),
    SAME("cpu.not_equal", a != b),
    SAME("cpu.less", a < b),
    SAME("cpu.less_equal", a <= b),
    SAME("cpu.greater", a > b),
    SAME("cpu.greater_equal", a >= b),
    {"cpu.squared_difference", LOOP(double, (a - b) * (a - b)), 1,
     WHOLE(scalar::wrapping_square_of_difference(a, b))},
    {"cpu.atan2", LOOP(double, std::atan2(a, b)), 20, nullptr, LOOP(float, std::atan2(a, b))},
    {"cpu.mod", LOOP(double, std::fmod(a, b)), 20, WHOLE(scalar::int_mod(a, b)),
     LOOP(float, std::fmod(a, b))},
    {"cpu.remainder", LOOP(double, floor_mod(a, b)), 20, WHOLE(scalar::int_remainder(a, b)),
     LOOP(float, floor_mod(a, b))},
};
#undef LOOP
#undef WHOLE
#undef SAME

std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  const Row& row = row_of(kRows, call);
  const TileF32 f32 = row.f32 ? row.f32 : HWY_DYNAMIC_DISPATCH(binary_tile)(call.op.str());
  ElementwiseCode code{f32, row.f64, row.cost};
  code.i64 = row.i64;
  return prepare_elementwise(call, code);
}

}  // namespace

std::vector<Kernel> binary_kernels() { return elementwise_kernels(kRows, prepare); }

}  // namespace aloft::cpu
#endif  // HWY_ONCE

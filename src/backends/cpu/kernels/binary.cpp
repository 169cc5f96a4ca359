// Element-wise arithmetic and comparison of two tensors (the rows of ops/binary.cpp and
// ops/compare.cpp).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/binary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <string_view>

#include "backends/cpu/elements/formula_tiles-inl.h"
#include "backends/cpu/elements/formula_tiles.h"
#include "scalar/arithmetic.h"
#include "scalar/integers.h"

// ROW(name, cost of an element in units of an addition, tile of integers or null); SAME is the
// formula of floats.
#define ALOFT_BINARIES(ROW)                                                     \
  ROW(add, 1, whole_tile<scalar::wrapping_add>)                                 \
  ROW(sub, 1, whole_tile<scalar::wrapping_sub>)                                 \
  ROW(mul, 1, whole_tile<scalar::wrapping_mul>)                                 \
  ROW(div, 2, nullptr)                                                          \
  ROW(maximum, 1, SAME(maximum))                                                \
  ROW(minimum, 1, SAME(minimum))                                                \
  ROW(pow, 12, whole_tile<scalar::wrapping_pow>)                                \
  ROW(squared_difference, 1, whole_tile<scalar::wrapping_square_of_difference>) \
  ROW(equal, 1, SAME(equal))                                                    \
  ROW(not_equal, 1, SAME(not_equal))                                            \
  ROW(less, 1, SAME(less))                                                      \
  ROW(less_equal, 1, SAME(less_equal))                                          \
  ROW(greater, 1, SAME(greater))                                                \
  ROW(greater_equal, 1, SAME(greater_equal))
#define ALOFT_VALUE(name) [](auto a, auto b) { return scalar::name(a, b); }

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

TileF32 binary_tile(std::string_view op) {
#define ROW(name, cost, whole) \
  if (op == #name) return formula_tile_f32<2>(ALOFT_VALUE(name));
  ALOFT_BINARIES(ROW)
#undef ROW
  return nullptr;
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
namespace {

HWY_EXPORT(binary_tile);

struct Row {
  const char* name;  // "cpu.OP"
  TileF64 f64;
  std::int64_t cost;
  TileI64 i64;            // null: floats only
  TileF32 f32 = nullptr;  // where no vectors have the function
};

#define SAME(name) number_tile_of<std::int64_t, 2>(ALOFT_VALUE(name))
#define ROW(name, cost, whole) \
  {"cpu." #name, number_tile_of<double, 2>(ALOFT_VALUE(name)), cost, whole},
#define BY_NUMBER(name, whole)                                            \
  {"cpu." #name, number_tile_of<double, 2>(ALOFT_VALUE(name)), 20, whole, \
   number_tile_of<float, 2>(ALOFT_VALUE(name))},
const Row kRows[] = {
    ALOFT_BINARIES(ROW)                                      //
    BY_NUMBER(atan2, nullptr)                                //
    BY_NUMBER(mod, whole_tile<scalar::int_mod>)              //
    BY_NUMBER(remainder, whole_tile<scalar::int_remainder>)  //
};
#undef SAME
#undef ROW
#undef BY_NUMBER

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

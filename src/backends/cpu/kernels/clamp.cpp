// clamp
#include "ops/clamp.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/clamp.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/elements/formula_tiles-inl.h"
#include "backends/cpu/elements/formula_tiles.h"
#include "scalar/arithmetic.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

TileF32 clamp_function() {
  return formula_tile_f32<1, 2>(
      [](auto x, auto low, auto high) { return scalar::clamp(x, low, high); });
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "backends/cpu/integers.h"
#include "scalar/integers.h"

namespace aloft::cpu {
namespace {

HWY_EXPORT(clamp_function);

void clamp_whole(const std::int64_t* const* in, std::int64_t* out, std::int64_t n,
                 const double* p) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = scalar::whole_clamp(in[0][i], p[0], p[1]);
}

std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  auto a = from_attrs<ClampAttrs>(call.attrs);
  if (const DType t = call.in[0].dtype; is_integer(t)) {  // beyond the type's own, these are bounds
    const auto least = static_cast<double>(least_of(t)), most = static_cast<double>(most_of(t));
    a.low = std::clamp(a.low, least, most);
    a.high = std::clamp(a.high, least, most);
  }
  const TileF64 wide = number_tile_of<double, 1, 2>(
      [](double x, double low, double high) { return scalar::clamp(x, low, high); });
  ElementwiseCode code{HWY_DYNAMIC_DISPATCH(clamp_function)(), wide, 1, {a.low, a.high}};
  code.i64 = clamp_whole;
  return prepare_elementwise(call, code);
}

}  // namespace

std::vector<Kernel> clamp_kernels() {
  return {{"cpu.clamp", "clamp", always, prepare, same_type_pairs}};
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE

// Activations and their gradients (the rows of ops/activation.cpp).
#include "ops/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/activation.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <string_view>

#include "backends/cpu/elements/formula_tiles-inl.h"
#include "backends/cpu/elements/formula_tiles.h"
#include "scalar/activations.h"

// ROW(name, cost of an element in units of an addition, arguments of the formula)
#define ALOFT_ACTIVATIONS(ROW) \
  ROW(relu, 1, x)              \
  ROW(relu6, 1, x)             \
  ROW(gelu, 8, x)              \
  ROW(gelu_tanh, 6, x)         \
  ROW(silu, 5, x)              \
  ROW(sigmoid, 5, x)           \
  ROW(log_sigmoid, 9, x)       \
  ROW(softplus, 9, x)          \
  ROW(softsign, 2, x)          \
  ROW(elu, 5, x, alpha)        \
  ROW(selu, 5, x)              \
  ROW(leaky_relu, 1, x, alpha) \
  ROW(hard_sigmoid, 2, x)      \
  ROW(hard_swish, 2, x)        \
  ROW(mish, 6, x)

// NAME and NAME_grad as functions of a tile's operands and the op's number.
#define ALOFT_VALUE(name, ...) \
  [](auto x, [[maybe_unused]] auto alpha) { return scalar::name(__VA_ARGS__); }
#define ALOFT_GRADIENT(name, ...) \
  [](auto dy, auto x, [[maybe_unused]] auto alpha) { return dy * scalar::d_##name(__VA_ARGS__); }

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

FloatTiles activation_tiles(std::string_view op) {
#define ROW(name, cost, ...)                                                   \
  if (op == #name) return formula_tiles<1, 1>(ALOFT_VALUE(name, __VA_ARGS__)); \
  if (op == #name "_grad") return formula_tiles<2, 1>(ALOFT_GRADIENT(name, __VA_ARGS__));
  ALOFT_ACTIVATIONS(ROW)
#undef ROW
  return {};
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
namespace {

HWY_EXPORT(activation_tiles);

struct Row {
  const char* name;  // "cpu.OP"
  TileF64 f64;
  std::int64_t cost;
};

#define ROW(name, cost, ...)                                                                  \
  {"cpu." #name, number_tile_of<double, 1, 1>(ALOFT_VALUE(name, __VA_ARGS__)), cost},         \
      {"cpu." #name "_grad", number_tile_of<double, 2, 1>(ALOFT_GRADIENT(name, __VA_ARGS__)), \
       (cost) + 4},
const Row kRows[] = {ALOFT_ACTIVATIONS(ROW)};
#undef ROW

std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  const Row& row = row_of(kRows, call);
  const FloatTiles tiles = HWY_DYNAMIC_DISPATCH(activation_tiles)(call.op.str());
  ElementwiseCode code{tiles.f32, row.f64, row.cost};
  code.low = tiles;
  if (!call.attrs.empty()) code.numbers[0] = from_attrs<ActivationAttrs>(call.attrs).alpha;
  return prepare_elementwise(call, code);
}

}  // namespace

std::vector<Kernel> activation_kernels() { return elementwise_kernels(kRows, prepare); }

}  // namespace aloft::cpu
#endif  // HWY_ONCE

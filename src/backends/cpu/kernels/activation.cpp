// Activations and their gradients (the rows of ops/activation.cpp).
#include "ops/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/activation.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <string_view>

#include "backends/cpu/elements/elementwise.h"
#include "backends/cpu/vectors/functions-inl.h"
#include "backends/cpu/vectors/map-inl.h"
#include "scalar/math.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

HWY_INLINE FloatV zero() { return hn::Zero(Floats()); }
HWY_INLINE auto is_below(FloatV x, float bound) { return hn::Lt(x, constant(bound)); }

// x where lo <= x <= hi (NaN too), the nearer bound elsewhere.
HWY_INLINE FloatV clamp_to(FloatV x, float lo, float hi) {
  const FloatV y = hn::IfThenElse(is_below(x, lo), constant(lo), x);
  return hn::IfThenElse(hn::Gt(y, constant(hi)), constant(hi), y);
}
// y where lo < x < hi, else 0.
HWY_INLINE FloatV inside(FloatV x, float lo, float hi, FloatV y) {
  const auto in = hn::And(hn::Gt(x, constant(lo)), hn::Lt(x, constant(hi)));
  return hn::IfThenElseZero(in, y);
}
// exp(min(x, 0)); NaN stays.
HWY_INLINE FloatV exp_at_most_one(FloatV x) {
  return exp_of(hn::IfThenElse(hn::Gt(x, zero()), zero(), x));
}

// gelu's approximation has the sigmoid of z = 2 sqrt(2 / pi) (x + 0.044715 x^3): e^-|z| from x and
// its square.
HWY_INLINE FloatV gelu_exp(FloatV x, FloatV x2) {
  constexpr float kFactor = 1.5957691216057308f * kLog2E;
  const FloatV near = hn::MulAdd(x2, constant(0.044715f * kFactor), constant(kFactor));
  // In powers of two; below -152 nothing is left.
  const FloatV t = hn::Max(constant(-152), hn::Neg(hn::Abs(hn::Mul(x, near))));
  const FloatV n = nearest(t);
  return power_of_two(n, hn::Sub(t, n));
}
HWY_INLINE FloatV gelu_tanh_of(FloatV x) {
  return times_sigmoid_by(x, x, gelu_exp(x, hn::Mul(x, x)));
}
HWY_INLINE FloatV d_gelu_tanh_of(FloatV x) {
  // Where the square could overflow, the slope has long been 0; an infinite x still gives NaN.
  const FloatV x2 = hn::Min(constant(1e6f), hn::Mul(x, x));
  const Sigmoid s = sigmoid_by(x, gelu_exp(x, x2));
  const FloatV slope =
      hn::MulAdd(x2, constant(0.134145f * 1.5957691216057308f), constant(1.5957691216057308f));
  return hn::MulAdd(hn::Mul(x, s.slope), slope, s.value);
}
HWY_INLINE FloatV gelu_of(FloatV x) { return hn::Mul(x, normal_of(x).below); }
HWY_INLINE FloatV d_gelu_of(FloatV x) {
  const Normal n = normal_of(x);
  return keep_nan(x, hn::MulAdd(hn::Mul(x, constant(0.3989422804014327f)), n.density, n.below));
}
HWY_INLINE FloatV d_silu_of(FloatV x) {
  const Sigmoid s = sigmoid_with_slope(x);
  return hn::MulAdd(x, s.slope, s.value);
}
// tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2); from x = 20 on it is 1.
HWY_INLINE FloatV tanh_softplus_of(FloatV x) {
  const FloatV e = exp_of(hn::IfThenElse(hn::Gt(x, constant(20)), constant(20), x));
  const FloatV n = hn::Mul(e, hn::Add(e, constant(2)));
  return quotient(n, hn::Add(n, constant(2)));
}
HWY_INLINE FloatV d_mish_of(FloatV x) {
  const FloatV t = tanh_softplus_of(x);
  const FloatV slope = hn::Mul(hn::NegMulAdd(t, t, constant(1)), sigmoid_of(x));
  return hn::MulAdd(x, slope, t);
}
HWY_INLINE FloatV elu_of(FloatV x, float alpha) {
  const FloatV below = hn::Mul(expm1_of(x), constant(alpha));
  return hn::IfThenElse(is_below(x, 0), below, x);
}
HWY_INLINE FloatV d_elu_of(FloatV x, float alpha, float above) {
  const FloatV below = hn::Mul(exp_at_most_one(x), constant(alpha));
  return hn::IfThenElse(hn::Gt(x, zero()), constant(above), below);
}

// NAME and NAME_grad; `a` is alpha.
#define ACTIVATION(name, y, dy_dx)                                                            \
  template <class T>                                                                          \
  void name##_tile(const T* const* in, T* out, std::int64_t n, const double* p) {             \
    [[maybe_unused]] const float a = static_cast<float>(p[0]);                                \
    map(in[0], out, n, [a](FloatV x) HWY_ATTR -> FloatV { return (void)a, y; });              \
  }                                                                                           \
  template <class T>                                                                          \
  void name##_grad_tile(const T* const* in, T* out, std::int64_t n, const double* p) {        \
    [[maybe_unused]] const float a = static_cast<float>(p[0]);                                \
    map(in[0], in[1], out, n,                                                                 \
        [a](FloatV dy, FloatV x) HWY_ATTR -> FloatV { return (void)a, hn::Mul(dy, dy_dx); }); \
  }
ACTIVATION(relu, hn::IfThenElse(is_below(x, 0), zero(), x),
           hn::IfThenZeroElse(hn::Le(x, zero()), constant(1)))
ACTIVATION(relu6, clamp_to(x, 0, 6), inside(x, 0, 6, constant(1)))
ACTIVATION(gelu, gelu_of(x), d_gelu_of(x))
ACTIVATION(gelu_tanh, gelu_tanh_of(x), d_gelu_tanh_of(x))
ACTIVATION(silu, silu_of(x), d_silu_of(x))
ACTIVATION(sigmoid, sigmoid_of(x), sigmoid_with_slope(x).slope)
ACTIVATION(log_sigmoid, hn::Neg(softplus_of(hn::Neg(x))), sigmoid_of(hn::Neg(x)))
ACTIVATION(softplus, softplus_of(x), sigmoid_of(x))
ACTIVATION(softsign, hn::Div(x, hn::Add(constant(1), hn::Abs(x))),
           hn::Div(hn::Div(constant(1), hn::Add(constant(1), hn::Abs(x))),
                   hn::Add(constant(1), hn::Abs(x))))
ACTIVATION(elu, elu_of(x, a), d_elu_of(x, a, 1))
ACTIVATION(selu, hn::Mul(elu_of(x, scalar::kSeluAlpha<float>), constant(scalar::kSeluScale<float>)),
           d_elu_of(x, scalar::kSeluAlpha<float>* scalar::kSeluScale<float>,
                    scalar::kSeluScale<float>))
ACTIVATION(leaky_relu, hn::IfThenElse(is_below(x, 0), hn::Mul(x, constant(a)), x),
           hn::IfThenElse(hn::Gt(x, zero()), constant(1), constant(a)))
ACTIVATION(hard_sigmoid, hn::Div(clamp_to(hn::Add(x, constant(3)), 0, 6), constant(6)),
           inside(x, -3, 3, constant(1.0f / 6)))
ACTIVATION(hard_swish, hn::Mul(x, hn::Div(clamp_to(hn::Add(x, constant(3)), 0, 6), constant(6))),
           hn::Add(hn::Div(clamp_to(hn::Add(x, constant(3)), 0, 6), constant(6)),
                   inside(x, -3, 3, hn::Mul(x, constant(1.0f / 6)))))
ACTIVATION(mish, hn::Mul(x, tanh_softplus_of(x)), d_mish_of(x))
#undef ACTIVATION

FloatTiles activation_tiles(std::string_view op) {
#define ROW(name)                                   \
  if (op == #name) return FLOAT_TILES(name##_tile); \
  if (op == #name "_grad") return FLOAT_TILES(name##_grad_tile)
  ROW(relu);
  ROW(relu6);
  ROW(gelu);
  ROW(gelu_tanh);
  ROW(silu);
  ROW(sigmoid);
  ROW(log_sigmoid);
  ROW(softplus);
  ROW(softsign);
  ROW(elu);
  ROW(selu);
  ROW(leaky_relu);
  ROW(hard_sigmoid);
  ROW(hard_swish);
  ROW(mish);
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

#define WIDE(...)                                                             \
  [](const double* const* in, double* out, std::int64_t n, const double* p) { \
    for (std::int64_t i = 0; i < n; ++i) {                                    \
      [[maybe_unused]] const double x = in[0][i], a = p[0];                   \
      out[i] = __VA_ARGS__;                                                   \
    }                                                                         \
  }
#define WIDE_GRAD(...)                                                        \
  [](const double* const* in, double* out, std::int64_t n, const double* p) { \
    for (std::int64_t i = 0; i < n; ++i) {                                    \
      [[maybe_unused]] const double x = in[1][i], a = p[0];                   \
      out[i] = in[0][i] * __VA_ARGS__;                                        \
    }                                                                         \
  }
#define ROW(name, cost)                                            \
  {"cpu." #name, WIDE(scalar::name(x)), cost}, {                   \
    "cpu." #name "_grad", WIDE_GRAD(scalar::d_##name(x)), cost + 4 \
  }
// Derivatives of functions with kinks are those of the bodies in ops/activation.cpp, whatever NaN.
#define ROW_STEP(name, cost, d) \
  {"cpu." #name, WIDE(scalar::name(x)), cost}, { "cpu." #name "_grad", WIDE_GRAD((d)), cost + 4 }
const Row kRows[] = {
    ROW(relu, 1),
    ROW_STEP(relu6, 1, x > 0 && x < 6 ? 1.0 : 0.0),
    ROW(gelu, 8),
    ROW(gelu_tanh, 6),
    ROW(silu, 5),
    ROW(sigmoid, 5),
    ROW(log_sigmoid, 9),
    ROW(softplus, 9),
    ROW(softsign, 2),
    {"cpu.elu", WIDE(scalar::elu(x, a)), 5},
    {"cpu.elu_grad", WIDE_GRAD(scalar::d_elu(x, a)), 9},
    ROW(selu, 5),
    {"cpu.leaky_relu", WIDE(scalar::leaky_relu(x, a)), 1},
    {"cpu.leaky_relu_grad", WIDE_GRAD(scalar::d_leaky_relu(x, a)), 5},
    ROW_STEP(hard_sigmoid, 2, x > -3 && x < 3 ? 1.0 / 6 : 0.0),
    ROW_STEP(hard_swish, 2, scalar::hard_sigmoid(x) + (x > -3 && x < 3 ? x / 6 : 0.0)),
    ROW(mish, 6),
};
#undef ROW_STEP
#undef WIDE
#undef WIDE_GRAD
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

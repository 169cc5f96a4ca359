#include "ops/activation.h"

#include <numbers>

#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/op.h"
#include "ops/statistics.h"
#include "ops/unary.h"
#include "ops/where.h"
#include "scalar/math.h"

namespace aloft {
namespace {

using A = ActivationAttrs;
using T = const Tensor&;

struct Row {
  const char* name;
  const char* doc;
  Numeric numeric;
  double flops;
  double (*eval)(double x, double alpha);
  Tensor (*derivative)(T x, double alpha);  // the body of NAME_grad, but for the factor dy
  const char* onnx;
  double alpha = 1;  // default of rows that have the attribute
  bool has_alpha = false;
};

// `inside` where lo < x < hi, else 0.
Tensor between(T x, double lo, double hi, T inside) {
  const Tensor above = where(greater(x, scalar_like(x, lo)), inside, scalar_like(x, 0));
  return where(less(x, scalar_like(x, hi)), above, scalar_like(x, 0));
}
Tensor constant(T like, double value) { return scalar_like(like, value); }
// `above` for x > 0, `below` elsewhere: at the kink at 0 the slope is the left one, as PyTorch's
// is.
Tensor by_sign(T x, T below, T above) { return where(greater(x, constant(x, 0)), above, below); }
// exp(x) for x < 0; bounded elsewhere, so that the branch not taken stays finite.
Tensor exp_below(T x) { return exp(minimum(x, constant(x, 0))); }

// Slopes are made in x's type, their constants too.
Tensor d_gelu(T x, double) {
  const Tensor below = (erf(x * constant(x, std::numbers::sqrt2 / 2)) + 1) * 0.5;
  const Tensor scale = constant(x, std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  const Tensor density = exp(square(x) * -0.5) * scale;
  return below + x * density;
}
Tensor d_gelu_tanh(T x, double) {
  const Tensor k = constant(x, 2 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
  const Tensor x2 = square(x);
  const Tensor s = sigmoid(x * (x2 * constant(x, 0.044715) + 1) * k);
  return s + x * s * (1 - s) * (x2 * constant(x, 3 * 0.044715) + 1) * k;
}
Tensor d_silu(T x, double) {
  const Tensor s = sigmoid(x);
  return s + x * s * (1 - s);
}
Tensor d_mish(T x, double) {
  const Tensor t = tanh(softplus(x));
  return t + x * (1 - square(t)) * sigmoid(x);
}

const Row kRows[] = {
    {"relu", "max(x, 0); its gradient at 0 is 0", Numeric::Follow, 1,
     [](double x, double) { return scalar::relu(x); },
     [](T x, double) {  // of NaN it is 1: a gradient that is NaN goes on
       return where(less_equal(x, constant(x, 0)), constant(x, 0), constant(x, 1));
     },
     "Relu"},
    {"relu6", "min(max(x, 0), 6)", Numeric::Follow, 2,
     [](double x, double) { return scalar::relu6(x); },
     [](T x, double) { return between(x, 0, 6, constant(x, 1)); }, ""},
    {"gelu", "x Phi(x), Phi the normal distribution function", Numeric::Follow, 20,
     [](double x, double) { return scalar::gelu(x); }, d_gelu, ""},
    {"gelu_tanh", "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))", Numeric::Follow, 15,
     [](double x, double) { return scalar::gelu_tanh(x); }, d_gelu_tanh, ""},
    {"silu", "x sigmoid(x)", Numeric::Follow, 12, [](double x, double) { return scalar::silu(x); },
     d_silu, ""},
    {"sigmoid", "1 / (1 + exp(-x))", Numeric::Follow, 11,
     [](double x, double) { return scalar::sigmoid(x); },
     [](T x, double) { return sigmoid(x) * sigmoid(-x); }, "Sigmoid"},
    {"log_sigmoid", "log(sigmoid(x))", Numeric::Widen, 20,
     [](double x, double) { return scalar::log_sigmoid(x); },
     [](T x, double) { return sigmoid(-x); }, ""},
    {"softplus", "log(1 + exp(x))", Numeric::Widen, 20,
     [](double x, double) { return scalar::softplus(x); }, [](T x, double) { return sigmoid(x); },
     "Softplus"},
    {"softsign", "x / (1 + |x|)", Numeric::Follow, 3,
     [](double x, double) { return scalar::softsign(x); },
     [](T x, double) { return square(reciprocal(abs(x) + 1)); }, "Softsign"},
    {"elu", "x, below 0 alpha (exp(x) - 1)", Numeric::Follow, 11,
     [](double x, double alpha) { return scalar::elu(x, alpha); },
     [](T x, double alpha) { return by_sign(x, exp_below(x) * alpha, constant(x, 1)); }, "Elu", 1,
     true},
    {"selu", "elu that keeps mean 0 and deviation 1 through deep networks", Numeric::Follow, 11,
     [](double x, double) { return scalar::selu(x); },
     [](T x, double) {
       const double scale = scalar::kSeluScale<double>;
       return by_sign(x, exp_below(x) * (scalar::kSeluAlpha<double> * scale), constant(x, scale));
     },
     "Selu"},
    {"leaky_relu", "x, below 0 alpha x", Numeric::Follow, 2,
     [](double x, double alpha) { return scalar::leaky_relu(x, alpha); },
     [](T x, double alpha) { return by_sign(x, constant(x, alpha), constant(x, 1)); }, "LeakyRelu",
     0.01, true},
    {"hard_sigmoid", "relu6(x + 3) / 6", Numeric::Follow, 3,
     [](double x, double) { return scalar::hard_sigmoid(x); },
     [](T x, double) { return between(x, -3, 3, constant(x, 1.0 / 6)); }, ""},
    {"hard_swish", "x relu6(x + 3) / 6", Numeric::Follow, 4,
     [](double x, double) { return scalar::hard_swish(x); },
     [](T x, double) { return hard_sigmoid(x) + between(x, -3, 3, x * (1.0 / 6)); }, "HardSwish"},
    {"mish", "x tanh(softplus(x))", Numeric::Follow, 25,
     [](double x, double) { return scalar::mish(x); }, d_mish, "Mish"},
};

// Where no row has a kink: both sides of 0, away from it and from 3 and 6.
void add_samples(const Row& row, int operands, Samples& s) {
  const auto add = [&](std::vector<SampleInput> in, const char* note = "") -> Sample& {
    if (operands == 2) in.insert(in.begin(), {in[0].shape, Fill::Normal});
    return row.has_alpha ? s.add(A{row.alpha}, std::move(in), note)
                         : s.add(NoAttrs{}, std::move(in), note);
  };
  for (const Shape& shape : {Shape{3, 17}, Shape{0}, Shape{1}, Shape{4097}, Shape{}})
    add({{shape, Fill::Uniform, 0.1, 2.5}});
  add({{{4097}, Fill::Uniform, -2.5, -0.1}});
  // In the tail of gelu_tanh the rounding of the exponent, near 50, is what a result is off by.
  Sample& far = add({{{64}, Fill::Uniform, -40, 40}}, "far out");
  far.gradient = false;
  if (std::string_view(row.name) == "gelu_tanh") far.tolerance = 64;
  add({{{64}, Fill::Special}}, "special values").gradient = false;
}

template <class Attributes>
OpDef activation_op(const Row& row) {
  const auto alpha_of = [](const Attributes& a) {
    if constexpr (std::is_same_v<Attributes, A>) return a.alpha;
    return 1.0;
  };
  return define<Attributes>({
      .name = row.name,
      .doc = row.doc,
      .infer =
          [](const Attributes&, Infer& c) {
            c.need_count(1);
            c.need_float(0);
            c.out(c.in(0));
          },
      .numeric = row.numeric,
      .meaning = Eval<Attributes>([f = row.eval, alpha_of](const Attributes& a, EvalCall& c) {
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i)
          c.out[0][i] = f(c.in[0][i], alpha_of(a));
      }),
      .vjp = VjpOf<Attributes>(
          [grad = Name(std::string(row.name) + "_grad")](const Attributes& a, Vjp& g) {
            if (g.needs(0)) g.give(0, emit_one(grad, to_attrs(a), {g.cotangent(0), g.in(0)}));
          }),
      .cost = [flops = row.flops](const Attributes&, CallTypes in,
                                  CallTypes out) { return elementwise_cost(flops, in, out); },
      .labels = "... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{row.onnx, 13},
      .samples = [&row](Samples& s) { add_samples(row, 1, s); },
  });
}

template <class Attributes>
OpDef activation_grad_op(const Row& row) {
  return define<Attributes>({
      .name = std::string(row.name) + "_grad",
      .doc = "dy times the derivative of " + std::string(row.name) + " at x.",
      .infer =
          [](const Attributes&, Infer& c) {
            c.need_count(2);
            c.need_float(0);
            c.need_same_dtype(0, 1);
            c.need_same_shape(0, 1);
            c.out(c.in(1));
          },
      .numeric = row.numeric,
      .meaning =
          Body<Attributes>([f = row.derivative](const Attributes& a,
                                                std::span<const Tensor> in) -> std::vector<Tensor> {
            double alpha = 1;
            if constexpr (std::is_same_v<Attributes, A>) alpha = a.alpha;
            (void)a;
            const DType wide = statistics_type(in[1].dtype());  // as the kernel does
            const Tensor x = cast(in[1], wide);
            return {cast(cast(in[0], wide) * f(x, alpha), in[1].dtype())};
          }),
      .vjp = FromBody{},
      .cost = [flops = row.flops](const Attributes&, CallTypes in,
                                  CallTypes out) { return elementwise_cost(flops + 4, in, out); },
      .labels = "..., ... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = no_onnx(),
      .samples = [&row](Samples& s) { add_samples(row, 2, s); },
  });
}

}  // namespace

std::vector<OpDef> activation_ops() {
  std::vector<OpDef> all;
  for (const Row& row : kRows) {
    all.push_back(row.has_alpha ? activation_op<A>(row) : activation_op<NoAttrs>(row));
    all.push_back(row.has_alpha ? activation_grad_op<A>(row) : activation_grad_op<NoAttrs>(row));
  }
  return all;
}

#define ACTIVATION(name) \
  Tensor name(Operand x) { return emit_one(#name, {}, {x}); }
ACTIVATION(relu)
ACTIVATION(relu6)
ACTIVATION(gelu)
ACTIVATION(gelu_tanh)
ACTIVATION(silu)
ACTIVATION(sigmoid)
ACTIVATION(log_sigmoid)
ACTIVATION(softplus)
ACTIVATION(softsign)
ACTIVATION(selu)
ACTIVATION(hard_sigmoid)
ACTIVATION(hard_swish)
ACTIVATION(mish)
#undef ACTIVATION

Tensor elu(Operand x, double alpha) {
  return emit_one("elu", to_attrs(ActivationAttrs{alpha}), {x});
}
Tensor leaky_relu(Operand x, double alpha) {
  return emit_one("leaky_relu", to_attrs(ActivationAttrs{alpha}), {x});
}

}  // namespace aloft

#include "ops/activation.h"

#include <span>

#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/kept_type.h"
#include "ops/op.h"
#include "ops/term_tensors.h"
#include "scalar/activations.h"

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
  Tensor (*derivative)(T in, double slope);  // the body of NAME_grad, but for the factor dy
  const char* onnx;
  double alpha = 1;  // default of rows that have the attribute
  bool has_alpha = false;
};

// The formula `name` in double, and its derivative as the ops of a graph.
#define ALOFT_FORMULA(name, ...)                                                     \
  [](double x, [[maybe_unused]] double alpha) { return scalar::name(__VA_ARGS__); }, \
      [](T in, [[maybe_unused]] double slope) {                                      \
        const scalar::Var<0> x;                                                      \
        [[maybe_unused]] const scalar::Constant alpha(slope);                        \
        return TermTensors(std::span(&in, 1)).of(scalar::d_##name(__VA_ARGS__));     \
      }

const Row kRows[] = {
    {"relu", "max(x, 0); its gradient at 0 is 0", Numeric::Follow, 1, ALOFT_FORMULA(relu, x),
     "Relu"},
    {"relu6", "min(max(x, 0), 6)", Numeric::Follow, 2, ALOFT_FORMULA(relu6, x), ""},
    {"gelu", "x Phi(x), Phi the normal distribution function", Numeric::Follow, 20,
     ALOFT_FORMULA(gelu, x), ""},
    {"gelu_tanh", "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))", Numeric::Follow, 15,
     ALOFT_FORMULA(gelu_tanh, x), ""},
    {"silu", "x sigmoid(x)", Numeric::Follow, 12, ALOFT_FORMULA(silu, x), ""},
    {"sigmoid", "1 / (1 + exp(-x))", Numeric::Follow, 11, ALOFT_FORMULA(sigmoid, x), "Sigmoid"},
    {"log_sigmoid", "log(sigmoid(x))", Numeric::Widen, 20, ALOFT_FORMULA(log_sigmoid, x), ""},
    {"softplus", "log(1 + exp(x))", Numeric::Widen, 20, ALOFT_FORMULA(softplus, x), "Softplus"},
    {"softsign", "x / (1 + |x|)", Numeric::Follow, 3, ALOFT_FORMULA(softsign, x), "Softsign"},
    {"elu", "x, below 0 alpha (exp(x) - 1)", Numeric::Follow, 11, ALOFT_FORMULA(elu, x, alpha),
     "Elu", 1, true},
    {"selu", "elu that keeps mean 0 and deviation 1 through deep networks", Numeric::Follow, 11,
     ALOFT_FORMULA(selu, x), "Selu"},
    {"leaky_relu", "x, below 0 alpha x", Numeric::Follow, 2, ALOFT_FORMULA(leaky_relu, x, alpha),
     "LeakyRelu", 0.01, true},
    {"hard_sigmoid", "relu6(x + 3) / 6", Numeric::Follow, 3, ALOFT_FORMULA(hard_sigmoid, x), ""},
    {"hard_swish", "x relu6(x + 3) / 6", Numeric::Follow, 4, ALOFT_FORMULA(hard_swish, x),
     "HardSwish"},
    {"mish", "x tanh(softplus(x))", Numeric::Follow, 25, ALOFT_FORMULA(mish, x), "Mish"},
};
#undef ALOFT_FORMULA

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

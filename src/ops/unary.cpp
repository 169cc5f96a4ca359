#include "ops/unary.h"

#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/kept_type.h"
#include "ops/op.h"
#include "scalar/arithmetic.h"
#include "scalar/integers.h"

namespace aloft {
namespace {

struct Row {
  const char* name;
  const char* doc;
  Numeric numeric;
  double flops;
  double (*eval)(double);
  Tensor (*derivative)(const Tensor& x, const Tensor& y);  // null: zero almost everywhere
  const char* onnx;
  double lo = -2, hi = 2;                         // where the samples' gradients exist
  std::int64_t (*whole)(std::int64_t) = nullptr;  // of integers; null: floats only
};

// Operators on Tensor need the conversion to Operand; these keep the rows readable.
using T = const Tensor&;

const Row kRows[] = {
    {"neg", "-x", Numeric::Follow, 1, scalar::neg<double>,
     [](T x, T) { return scalar_like(x, -1); }, "Neg", -2, 2, scalar::wrapping_neg},
    {"abs", "|x|; its gradient at 0 is 0, at NaN NaN", Numeric::Follow, 1, scalar::abs<double>,
     [](T x, T) { return sign(x); }, "Abs", 0.1, 2, scalar::wrapping_abs},
    {"sign", "-1, 0 or 1; NaN stays NaN", Numeric::Follow, 1, scalar::sign<double>, nullptr, "Sign",
     0.1, 2, scalar::int_sign},
    {"square", "x * x", Numeric::Follow, 1, scalar::square<double>, [](T x, T) { return x * 2; },
     "", -2, 2, scalar::wrapping_square},
    {"sqrt", "square root", Numeric::Follow, 1, scalar::sqrt<double>,
     [](T, T y) { return 0.5 / y; }, "Sqrt", 0.2, 3},
    {"rsqrt", "1 / sqrt(x)", Numeric::Widen, 2, scalar::rsqrt<double>,
     [](T, T y) { return y * y * y * -0.5; }, "", 0.2, 3},
    {"reciprocal", "1 / x", Numeric::Widen, 1, scalar::reciprocal<double>,
     [](T, T y) { return -(y * y); }, "Reciprocal", 0.2, 3},
    {"exp", "e to the x", Numeric::Widen, 10, scalar::exp<double>, [](T, T y) { return y; }, "Exp"},
    {"expm1", "exp(x) - 1, exact near 0", Numeric::Widen, 10, scalar::expm1<double>,
     [](T x, T) { return exp(x); }, ""},
    {"log", "natural logarithm", Numeric::Widen, 10, scalar::log<double>,
     [](T x, T) { return reciprocal(x); }, "Log", 0.2, 3},
    {"log1p", "log(1 + x), exact near 0", Numeric::Widen, 10, scalar::log1p<double>,
     [](T x, T) { return reciprocal(x + 1); }, "", -0.5, 3},
    {"sin", "sine of radians", Numeric::Widen, 12, scalar::sin<double>,
     [](T x, T) { return cos(x); }, "Sin"},
    {"cos", "cosine of radians", Numeric::Widen, 12, scalar::cos<double>,
     [](T x, T) { return -sin(x); }, "Cos"},
    {"tan", "tangent of radians", Numeric::Widen, 15, scalar::tan<double>,
     [](T, T y) { return y * y + 1; }, "Tan", -1, 1},
    {"asin", "arc sine", Numeric::Widen, 15, scalar::asin<double>,
     [](T x, T) { return rsqrt(1 - x * x); }, "Asin", -0.9, 0.9},
    {"acos", "arc cosine", Numeric::Widen, 15, scalar::acos<double>,
     [](T x, T) { return -rsqrt(1 - x * x); }, "Acos", -0.9, 0.9},
    {"atan", "arc tangent", Numeric::Widen, 15, scalar::atan<double>,
     [](T x, T) { return reciprocal(x * x + 1); }, "Atan"},
    {"sinh", "hyperbolic sine", Numeric::Widen, 15, scalar::sinh<double>,
     [](T x, T) { return cosh(x); }, "Sinh"},
    {"cosh", "hyperbolic cosine", Numeric::Widen, 15, scalar::cosh<double>,
     [](T x, T) { return sinh(x); }, "Cosh"},
    {"tanh", "hyperbolic tangent", Numeric::Follow, 12, scalar::tanh<double>,
     [](T, T y) { return 1 - y * y; }, "Tanh"},
    {"erf", "error function", Numeric::Widen, 15, scalar::erf<double>,
     [](T x, T) { return exp(-(x * x)) * 1.1283791670955126; }, "Erf"},
    {"floor", "largest integer not above x", Numeric::Follow, 1, scalar::floor<double>, nullptr,
     "Floor", 0.1, 0.9},
    {"ceil", "smallest integer not below x", Numeric::Follow, 1, scalar::ceil<double>, nullptr,
     "Ceil", 0.1, 0.9},
    {"round", "nearest integer, halves to even", Numeric::Follow, 1, scalar::round<double>, nullptr,
     "Round", 0.1, 0.4},
};

// dy times the slope: where the op itself widens, a slope leaves the range of f16 (1 / x below
// 1.5e-5) before it meets dy.
Tensor gradient(Vjp& g, Numeric numeric, Tensor (*slope)(T x, T y)) {
  const Tensor& x = g.in(0);
  if (numeric != Numeric::Widen || !is_low(x.dtype())) return g.cotangent(0) * slope(x, g.out(0));
  const AsWritten as_written;
  const auto wide = [](T t) { return cast(t, DType::F32); };
  return cast(wide(g.cotangent(0)) * slope(wide(x), wide(g.out(0))), x.dtype());
}

OpDef unary_op(const Row& row) {
  using A = NoAttrs;
  return define<A>({
      .name = row.name,
      .doc = row.doc,
      .infer =
          [floats_only = row.whole == nullptr](const A&, Infer& c) {
            c.need_count(1);
            if (floats_only) c.need_float(0);
            c.check(c.dtype(0) != DType::Bool, "operand 0 is bool", "a tensor of numbers",
                    "cast it to i32 first");
            c.out(c.in(0));
          },
      .numeric = row.numeric,
      .meaning = Eval<A>([f = row.eval, whole = row.whole](const A&, EvalCall& c) {
        const DType t = c.out[0].dtype;
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i)
          c.out[0][i] =
              is_integer(t) ? wrapped(whole(c.in[0][i].whole()), t) : HostNumber(f(c.in[0][i]));
      }),
      .vjp = VjpOf<A>([d = row.derivative, numeric = row.numeric](const A&, Vjp& g) {
        if (d && g.needs(0)) g.give(0, gradient(g, numeric, d));
      }),
      .cost = [flops = row.flops](const A&, CallTypes in,
                                  CallTypes out) { return elementwise_cost(flops, in, out); },
      .labels = "... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{row.onnx, 13},
      .samples =
          [lo = row.lo, hi = row.hi, whole = row.whole != nullptr](Samples& s) {
            for (const Shape& shape : {Shape{3, 17}, Shape{0}, Shape{1}, Shape{4097}, Shape{}})
              s.add(A{}, {{shape, Fill::Uniform, lo, hi}});
            s.add(A{}, {{{64}, Fill::Special}}, "special values").gradient = false;
            if (!whole) return;
            for (const DType t : {DType::I64, DType::I32, DType::I8, DType::U8})
              s.add(A{}, {whole_numbers({5, 67}, t)}, "integers");
          },
  });
}

}  // namespace

std::vector<OpDef> unary_ops() {
  std::vector<OpDef> all;
  for (const Row& row : kRows) all.push_back(unary_op(row));
  return all;
}

Tensor operator-(Operand x) { return neg(x); }

#define UNARY(name) \
  Tensor name(Operand x) { return emit_one(#name, {}, {x}); }
// clang-format off
UNARY(neg) UNARY(abs) UNARY(sign) UNARY(square) UNARY(sqrt) UNARY(rsqrt) UNARY(reciprocal)
UNARY(exp) UNARY(expm1) UNARY(log) UNARY(log1p) UNARY(sin) UNARY(cos) UNARY(tan) UNARY(asin)
UNARY(acos) UNARY(atan) UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(erf) UNARY(floor) UNARY(ceil)
UNARY(round)
// clang-format on
#undef UNARY

}  // namespace aloft

#include "ops/grad_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/op.h"
#include "ops/update_ops.h"

namespace aloft {
namespace {

using A = GradStatsAttrs;

void infer(const A& a, Infer& c) {
  c.check(a.clip_norm >= 0, "clip_norm is negative", "0 (no clipping) or a positive norm");
  c.check(c.count() >= 1 && c.in(0) == TensorType{DType::F32, Shape{}},
          "the first operand is not the scale", "the scale as f32[]");
  for (int i = 1; i < c.count(); ++i) {
    const std::string which = "gradient " + std::to_string(i - 1);
    c.check(is_float(c.dtype(i)) && c.dtype(i) != DType::F64,
            which + " is " + std::string(name_of(c.dtype(i))), "f32, bf16 or f16");
    c.check(c.shape(i).is_constant(), which + " has a symbolic shape", "a constant shape");
  }
  c.out(DType::F32, {});
  c.out(DType::F32, {});
  c.out(DType::I32, {});
  c.out(DType::I32, {});
}

void evaluate(const A& a, EvalCall& c) {
  double sum = 0, culprit = -1;
  for (std::size_t i = 1; i < c.in.size(); ++i) {
    double squares = 0;
    for (double v : c.in[i].values) squares += v * v;
    if (culprit < 0 && !std::isfinite(squares)) culprit = static_cast<double>(i - 1);
    sum += squares;
  }
  const double scale = c.in[0][0], norm = std::sqrt(sum) / scale;
  const bool finite = std::abs(norm) <= std::numeric_limits<float>::max();
  const double clip = a.clip_norm > 0 ? std::min(1.0, a.clip_norm / (norm + kClipEpsilon)) : 1.0;
  c.out[0][0] = norm;
  c.out[1][0] = finite ? clip / scale : 0.0;
  c.out[2][0] = finite;
  c.out[3][0] = culprit;
}

void samples(Samples& s) {
  const SampleInput one{{}, Fill::Constant, 1, 1, 1, DType::F32, true};
  const SampleInput scale{{}, Fill::Constant, 1024, 1024, 1, DType::F32, true};
  const auto g = [](Shape shape, DType dtype, Fill fill = Fill::Normal) {
    return SampleInput{std::move(shape), fill, -1, 1, 1, dtype, true};
  };
  const auto [f32, bf16, f16] = std::tuple{DType::F32, DType::BF16, DType::F16};
  s.add(A{}, {one, g({5, 7}, f32), g({4097}, f32)}).gradient = false;
  s.add(A{1.0}, {one, g({5, 7}, f32), g({}, bf16), g({0}, f16)}).gradient = false;
  s.add(A{0.5}, {scale, g({5, 7}, bf16), g({33}, bf16)}).gradient = false;
  s.add(A{100.0}, {scale, g({17}, f16), g({4097}, f16)}).gradient = false;
  s.add(A{1.0}, {scale, g({17}, f32), g({64}, f32, Fill::Special)}, "special values").gradient =
      false;
  s.add(A{}, {one, g({64}, bf16, Fill::Special), g({3}, f32)}, "special values").gradient = false;
  s.add(A{1.0}, {one}, "no gradients").gradient = false;
}

}  // namespace

std::vector<OpDef> grad_stats_ops() {
  return {define<A>({
      .name = "grad_stats",
      .doc =
          "Over all gradients g_i: norm = sqrt(sum g^2) / scale, accumulated in double in a "
          "fixed order; multiplier = min(1, clip_norm / (norm + 1e-6)) / scale; finite = 1 where "
          "every element and the norm (in fp32) are finite; culprit = the first i with an "
          "infinity or a NaN, or -1. Where finite is 0 the multiplier is 0.",
      .infer = infer,
      .numeric = Numeric::Exact,
      .meaning = Eval<A>(evaluate),
      .vjp = NoGradient{},
      .cost =
          [](const A&, CallTypes in, CallTypes out) {
            Cost cost = elementwise_cost(0, in, out);
            for (const TensorType& t : in) cost.flops += 2.0 * t.shape.max_numel();
            return cost;
          },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  })};
}

GradStats grad_stats(Operand scale, std::span<const Tensor> gradients, double clip_norm) {
  std::vector<Operand> in = {scale};
  for (const Tensor& g : gradients) in.emplace_back(g, scale.loc);
  const auto out = emit_op("grad_stats", to_attrs(A{clip_norm}), in);
  return {out[0], out[1], out[2], out[3]};
}

}  // namespace aloft

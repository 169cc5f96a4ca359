#include "ops/grad_stats.h"

#include "ops/op.h"
#include "ops/step_tensors.h"
#include "scalar/gradient_verdict.h"

namespace aloft {
namespace {

using A = GradStatsAttrs;

void need_gradient(Infer& c, int i, int number) {
  const std::string which = "gradient " + std::to_string(number);
  c.check(is_float(c.dtype(i)) && c.dtype(i) != DType::F64,
          which + " is " + std::string(name_of(c.dtype(i))), "f32, bf16 or f16");
  c.check(c.shape(i).is_constant(), which + " has a symbolic shape", "a constant shape");
}

void need_scale(const A& a, Infer& c) {
  c.check(a.clip_norm >= 0, "clip_norm is negative", "0 (no clipping) or a positive norm");
  c.check(c.count() >= 1 && c.in(0) == TensorType{DType::F32, Shape{}},
          "the first operand is not the scale", "the scale as f32[]");
}

void need_order(const A& a, std::int64_t count, Infer& c) {
  if (a.sought.empty()) return;
  std::vector<bool> named(static_cast<std::size_t>(count), false);
  bool ok = static_cast<std::int64_t>(a.sought.size()) == count;
  for (std::int64_t i : a.sought) {
    ok = ok && i >= 0 && i < count && !named[static_cast<std::size_t>(i)];
    if (ok) named[static_cast<std::size_t>(i)] = true;
  }
  c.check(ok, "the order in which a culprit is sought does not name each gradient once",
          "each of 0 to " + std::to_string(count - 1) + " once");
}

void give_statistics(Infer& c) {
  for (DType t : {DType::F32, DType::F32, DType::I32, DType::I32}) c.out(t, {});
}

void infer(const A& a, Infer& c) {
  need_scale(a, c);
  for (int i = 1; i < c.count(); ++i) need_gradient(c, i, i - 1);
  need_order(a, c.count() - 1, c);
  give_statistics(c);
}

double squares_of(const HostArray& gradient) {
  double sum = 0;
  for (double v : gradient.values) sum += v * v;
  return sum;
}

void judge(const A& a, const std::vector<double>& squares, EvalCall& c) {
  const scalar::GradientVerdict v = scalar::judge_gradients(
      static_cast<int>(squares.size()), [&](int i) { return squares[i]; }, c.in[0][0], a.clip_norm,
      a.sought);
  c.out[0][0] = v.norm;
  c.out[1][0] = v.multiplier;
  c.out[2][0] = v.finite;
  c.out[3][0] = v.culprit;
}

void evaluate(const A& a, EvalCall& c) {
  std::vector<double> squares;
  for (std::size_t i = 1; i < c.in.size(); ++i) squares.push_back(squares_of(c.in[i]));
  judge(a, squares, c);
}

void infer_squares(const NoAttrs&, Infer& c) {
  for (int i = 0; i < c.count(); ++i) need_gradient(c, i, i);
  c.out(DType::F64, {c.count()});
}

void evaluate_squares(const NoAttrs&, EvalCall& c) {
  for (std::size_t i = 0; i < c.in.size(); ++i)
    c.out[0][static_cast<std::int64_t>(i)] = squares_of(c.in[i]);
}

void infer_verdict(const A& a, Infer& c) {
  need_scale(a, c);
  std::int64_t count = 0;
  for (int i = 1; i < c.count(); ++i) {
    c.check(c.dtype(i) == DType::F64 && c.shape(i).rank() == 1 && c.shape(i).is_constant(),
            "operand " + std::to_string(i) + " is " + c.in(i).str(), "sums of squares as f64[n]");
    count += c.shape(i).max_numel();
  }
  need_order(a, count, c);
  give_statistics(c);
}

void evaluate_verdict(const A& a, EvalCall& c) {
  std::vector<double> squares;
  for (std::size_t i = 1; i < c.in.size(); ++i)
    squares.insert(squares.end(), c.in[i].values.begin(), c.in[i].values.end());
  judge(a, squares, c);
}

void samples(Samples& s) {
  const SampleInput one{{}, Fill::Constant, 1, 1, 1, DType::F32, true};
  const SampleInput scale{{}, Fill::Constant, 1024, 1024, 1, DType::F32, true};
  const auto g = [](Shape shape, DType dtype, Fill fill = Fill::Normal) {
    return SampleInput{std::move(shape), fill, -1, 1, 1, dtype, true};
  };
  const auto [f32, bf16, f16] = std::tuple{DType::F32, DType::BF16, DType::F16};
  s.add(A{}, {one, g({5, 7}, f32), g({4097}, f32)}).gradient = false;
  s.add(A{1.0}, {one, g({1, 7}, f32), g({}, bf16), g({0}, f16)}).gradient = false;
  s.add(A{0.5}, {scale, g({5, 7}, bf16), g({33}, bf16)}).gradient = false;
  s.add(A{100.0}, {scale, g({17}, f16), g({4097}, f16)}).gradient = false;
  s.add(A{1.0}, {scale, g({17}, f32), g({64}, f32, Fill::Special)}, "special values").gradient =
      false;
  s.add(A{}, {one, g({64}, bf16, Fill::Special), g({3}, f32)}, "special values").gradient = false;
  s.add(A{1.0}, {one}, "no gradients").gradient = false;
  s.add(A{1.0, {2, 0, 1}},
        {one, g({9}, f32, Fill::Special), g({5}, f32), g({64}, bf16, Fill::Special)},
        "sought from the last one on")
      .gradient = false;
}

Cost squares_cost(CallTypes in, CallTypes out) {
  Cost cost = elementwise_cost(0, in, out);
  for (const TensorType& t : in) cost.flops += 2.0 * t.shape.max_numel();
  return cost;
}

void squares_samples(Samples& s) {
  const auto g = [](Shape shape, DType dtype, Fill fill = Fill::Normal) {
    return SampleInput{std::move(shape), fill, -1, 1, 1, dtype, true};
  };
  const auto [f32, bf16, f16] = std::tuple{DType::F32, DType::BF16, DType::F16};
  s.add(NoAttrs{}, {g({5, 7}, f32)}).gradient = false;
  s.add(NoAttrs{}, {g({4097}, bf16), g({}, f16), g({0, 3}, f32)}).gradient = false;
  s.add(NoAttrs{}, {g({64}, bf16, Fill::Special), g({17}, f32)}, "special values").gradient = false;
  s.add(NoAttrs{}, {}, "no gradients").gradient = false;
}

void verdict_samples(Samples& s) {
  const auto scale = [](double v) {
    return SampleInput{{}, Fill::Constant, v, v, 1, DType::F32, true};
  };
  const auto squares = [](std::int64_t n, Fill fill = Fill::Uniform) {
    return SampleInput{{n}, fill, 0, 50, 1, DType::F64, true};
  };
  s.add(A{}, {scale(1), squares(7)}).gradient = false;
  s.add(A{1.0}, {scale(1024), squares(1), squares(0), squares(17), squares(4097)}).gradient = false;
  s.add(A{1.0}, {scale(1), squares(3), squares(31, Fill::Special)}, "special values").gradient =
      false;
  s.add(A{}, {scale(1)}, "no gradients").gradient = false;
  s.add(A{0, {2, 1, 0}}, {scale(1), squares(2, Fill::Special), squares(1)}, "sought backwards")
      .gradient = false;
}

OpDef squares_op() {
  return define<NoAttrs>({
      .name = "grad_squares",
      .doc = "The sum of squares of each gradient, accumulated in double in a fixed order.",
      .infer = infer_squares,
      .numeric = Numeric::Exact,
      .meaning = Eval<NoAttrs>(evaluate_squares),
      .vjp = NoGradient{},
      .cost = [](const NoAttrs&, CallTypes in, CallTypes out) { return squares_cost(in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = squares_samples,
  });
}

OpDef verdict_op() {
  return define<A>({
      .name = "grad_verdict",
      .doc = "grad_stats from the sums of squares of the gradients (grad_squares), one list behind "
             "the other.",
      .infer = infer_verdict,
      .numeric = Numeric::Exact,
      .meaning = Eval<A>(evaluate_verdict),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = verdict_samples,
  });
}

OpDef stats_op() {
  return define<A>({
      .name = "grad_stats",
      .doc =
          "Over all gradients g_i: norm = sqrt(sum g^2) / scale, accumulated in double in a "
          "fixed order; multiplier = min(1, clip_norm / (norm + 1e-6)) / scale; finite = 1 where "
          "every element and the norm (in fp32) are finite; culprit = the first i, as sought, with "
          "an infinity or a NaN, or -1. Where finite is 0 the multiplier is 0.",
      .infer = infer,
      .numeric = Numeric::Exact,
      .meaning = Eval<A>(evaluate),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return squares_cost(in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  });
}

}  // namespace

std::vector<OpDef> grad_stats_ops() { return {stats_op(), squares_op(), verdict_op()}; }

GradStats grad_stats(Operand scale, std::span<const Tensor> gradients, double clip_norm,
                     const Ints& sought) {
  std::vector<Operand> in = {scale};
  for (const Tensor& g : gradients) in.emplace_back(g, scale.loc);
  const auto out = emit_op("grad_stats", to_attrs(A{clip_norm, sought}), in);
  return {out[0], out[1], out[2], out[3]};
}

Tensor grad_squares(std::span<const Tensor> gradients) {
  const std::vector<Operand> in(gradients.begin(), gradients.end());
  return emit_op("grad_squares", {}, in)[0];
}

GradStats grad_verdict(Operand scale, std::span<const Tensor> squares, double clip_norm,
                       const Ints& sought) {
  std::vector<Operand> in = {scale};
  for (const Tensor& s : squares) in.emplace_back(s, scale.loc);
  const auto out = emit_op("grad_verdict", to_attrs(A{clip_norm, sought}), in);
  return {out[0], out[1], out[2], out[3]};
}

}  // namespace aloft

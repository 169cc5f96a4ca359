#include "ops/layer_norm.h"

#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/kept_type.h"
#include "ops/norm_layers.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"

namespace aloft {
namespace {

// The last n axes, and the first rank - n.
Ints trailing(std::int64_t n) {
  Ints axes;
  for (std::int64_t i = n; i > 0; --i) axes.push_back(-i);
  return axes;
}
Ints leading(int rank, std::int64_t n) {
  Ints axes;
  for (int i = 0; i < rank - n; ++i) axes.push_back(i);
  return axes;
}
Shape trailing_shape(const Shape& s, std::int64_t n) {
  return Shape(std::vector<Dim>(s.end() - n, s.end()));
}
Shape leading_shape(const Shape& s, std::int64_t n) {
  return Shape(std::vector<Dim>(s.begin(), s.end() - n));
}

void check_axes(std::int64_t axes, int operand, Infer& c) {
  c.need_rank(operand, 1);
  c.check(axes >= 1 && axes <= c.shape(operand).rank(),
          "axes = " + std::to_string(axes) + " is out of range",
          "1 to " + std::to_string(c.shape(operand).rank()) + ", the rank of x");
  c.check(trailing_shape(c.shape(operand), axes).is_constant(), "a normalised axis is symbolic",
          "constant normalised axes");
}

void infer(const LayerNormAttrs& a, Infer& c) {
  c.need_count(1, 3);
  check_eps(a.eps, c);
  c.need_float(0);
  check_axes(a.axes, 0, c);
  check_norm_parameters(trailing_shape(c.shape(0), a.axes), c);
  const Shape rows = leading_shape(c.shape(0), a.axes);
  c.out(c.in(0));
  c.out(statistics_type(c.dtype(0)), rows);
  c.out(statistics_type(c.dtype(0)), rows);
}

std::vector<Tensor> body(const LayerNormAttrs& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[0].dtype());
  const Standardised s = standardised(cast(in[0], wide), trailing(a.axes), a.eps);
  Tensor y = s.xhat;
  if (in.size() > 1) y = y * cast(in[1], wide);
  if (in.size() > 2) y = y + cast(in[2], wide);
  const Shape rows = leading_shape(in[0].shape(), a.axes);
  return {cast(y, in[0].dtype()), reshape(s.mean, rows), reshape(s.rstd, rows)};
}

void vjp(const LayerNormAttrs& a, Vjp& g) {
  give_norm_gradients(
      "layer_norm_grad", to_attrs(LayerNormGradAttrs{a.axes, g.count() > 2}), 2, g,
      [&](const Tensor& x) { return through_mean_and_rstd(x, trailing(a.axes), g); });
}

void samples(Samples& s) {
  const auto one = [&](std::int64_t axes, Shape x, int parameters) -> Sample& {
    const Shape p = trailing_shape(x, axes);
    std::vector<SampleInput> in = {{std::move(x), Fill::Normal, 0, 0, 2}};
    for (int i = 0; i < parameters; ++i) in.push_back({p, Fill::Uniform, 0.5, 1.5});
    return s.add(LayerNormAttrs{axes}, std::move(in));
  };
  one(1, {3, 17}, 2);
  one(1, {2, 3, 8}, 1);
  one(1, {2, 3, 8}, 0);
  one(2, {4, 3, 5}, 2);
  one(1, {5}, 2);
  one(1, {0, 4}, 2);
  one(1, {2, 1}, 2);
  one(1, {2, 4097}, 2);
  one(1, {65, 33}, 2);
  Sample& kept = one(1, {3, 17}, 2);
  kept.note = "parameters in f32";
  for (int i : {1, 2}) kept.in[i].fixed_dtype = true;
  s.add(LayerNormAttrs{}, {{{8, 16}, Fill::Special}}, "special values").gradient = false;
}

OpDef layer_norm_op() {
  return define<LayerNormAttrs>({
      .name = "layer_norm",
      .doc = "Normalises the trailing axes to mean 0 and variance 1, then scales and shifts; also "
             "gives mean and 1 / deviation in fp32.",
      .infer = infer,
      .numeric = Numeric::Widen,
      .meaning = Body<LayerNormAttrs>(body),
      .vjp = VjpOf<LayerNormAttrs>(vjp),
      .cost = [](const LayerNormAttrs&, CallTypes in,
                 CallTypes out) { return elementwise_cost(8, in, out); },
      .labels = "... *, *, * -> ... *, ..., ...",
      .fusion = Fusion::RowReduce,
      .onnx = Onnx{"LayerNormalization", 17},
      .samples = samples,
      .is_norm = true,
      .keep_inputs = {1, 2},
  });
}

void infer_grad(const LayerNormGradAttrs& a, Infer& c) {
  c.need_count(4, 5);
  c.need_float(0);
  c.need_same_dtype(0, 1);
  c.need_same_shape(0, 1);
  check_axes(a.axes, 1, c);
  infer_norm_gradients(leading_shape(c.shape(1), a.axes), trailing_shape(c.shape(1), a.axes),
                       a.shift, c);
}

std::vector<Tensor> grad_body(const LayerNormGradAttrs& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[1].dtype());
  const Ints axes = trailing(a.axes), rows = leading(in[1].rank(), a.axes);
  const Tensor dy = cast(in[0], wide), x = cast(in[1], wide);
  const Tensor m = expand_reduced(cast(in[2], wide), x, axes);
  const Tensor rstd = expand_reduced(cast(in[3], wide), x, axes);
  const Tensor xhat = (x - m) * rstd;
  const Tensor d = in.size() > 4 ? dy * cast(in[4], wide) : dy;
  std::vector<Tensor> out = {cast(through_standardised(d, xhat, rstd, axes), in[1].dtype())};
  if (in.size() < 5) return out;
  const auto over_rows = [&](const Tensor& t) {
    return cast(rows.empty() ? t : sum(t, rows), in[4].dtype());
  };
  out.push_back(over_rows(dy * xhat));
  if (a.shift) out.push_back(over_rows(dy));
  return out;
}

void grad_samples(Samples& s) {
  const auto one = [&](std::int64_t axes, Shape x, bool scale, bool shift,
                       DType statistics = DType::F32) -> Sample& {
    const Shape p = trailing_shape(x, axes), rows = leading_shape(x, axes);
    const bool fixed = statistics == DType::F64;
    std::vector<SampleInput> in = {{x, Fill::Normal, 0, 0, 1, statistics, fixed},
                                   {x, Fill::Normal, 0, 0, 2, statistics, fixed}};
    in.push_back({rows, Fill::Normal, 0, 0, 0.2, statistics, true});
    in.push_back({rows, Fill::Uniform, 0.5, 1.5, 1, statistics, true});
    if (scale) in.push_back({p, Fill::Uniform, 0.5, 1.5, 1, statistics, fixed});
    return s.add(LayerNormGradAttrs{axes, shift}, std::move(in));
  };
  one(1, {3, 17}, true, true);
  one(1, {3, 5}, true, true, DType::F64).note = "all in f64";
  one(1, {2, 3, 8}, true, false);
  one(1, {2, 3, 8}, false, false);
  one(2, {4, 3, 5}, true, true);
  one(1, {5}, true, true);
  one(1, {0, 4}, true, true);
  one(1, {2, 1}, true, true);
  one(1, {2, 4097}, true, true);
  one(1, {131, 33}, true, true);
  Sample& kept = one(1, {3, 17}, true, true);
  kept.note = "scale in f32";
  kept.in[4].fixed_dtype = true;
  s.add_special(LayerNormGradAttrs{1, true}, one(1, {5, 33}, true, true).in, {0, 1, 4});
}

OpDef layer_norm_grad_op() {
  return define<LayerNormGradAttrs>({
      .name = "layer_norm_grad",
      .doc = "Gradients of layer_norm: from dy, x, mean, rstd and the scale to dx, and where there "
             "is a scale, to its gradient and the shift's.",
      .infer = infer_grad,
      .numeric = Numeric::Widen,
      .meaning = Body<LayerNormGradAttrs>(grad_body),
      .vjp = FromBody{},
      .cost = [](const LayerNormGradAttrs&, CallTypes in,
                 CallTypes out) { return elementwise_cost(14, in, out.subspan(0, 1)); },
      .labels = "... *, ... *, ..., ..., * -> ... *, *, *",
      .fusion = Fusion::RowReduce,
      .onnx = no_onnx(),
      .samples = grad_samples,
      .is_norm = true,
      .keep_inputs = {2, 3, 4},
  });
}

}  // namespace

std::vector<OpDef> layer_norm_ops() { return {layer_norm_op(), layer_norm_grad_op()}; }

Tensor layer_norm(Operand x, const Tensor& scale, const Tensor& shift, double eps,
                  std::int64_t axes) {
  std::vector<Operand> in = {x};
  if (scale.is_defined() || shift.is_defined()) in.push_back(scale);
  if (shift.is_defined()) in.push_back(shift);
  return emit_op("layer_norm", to_attrs(LayerNormAttrs{axes, eps}), in)[0];
}

}  // namespace aloft

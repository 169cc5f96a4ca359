#include "ops/batch_norm.h"

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

void check_image(int x, Infer& c) {
  c.need_float(x);
  c.need_rank(x, 2);
  for (int d = 1; d < c.shape(x).rank(); ++d)
    c.check(c.shape(x)[d].is_constant(), "a dimension but the batch is symbolic",
            "constant channels and positions");
}

void infer(const BatchNormAttrs& a, Infer& c) {
  c.need_count(5);
  check_eps(a.eps, c);
  c.check(a.momentum >= 0 && a.momentum <= 1, "momentum is " + std::to_string(a.momentum),
          "a number from 0 to 1");
  check_image(0, c);
  const Shape per_channel{c.shape(0)[1]};
  for (int i : {1, 2}) check_norm_parameter(i, per_channel, 0, c);
  c.need_same_dtype(1, 2);
  for (int i : {3, 4}) {
    c.need_float(i);
    c.need_shape(i, per_channel);
  }
  Dim each = 1;
  for (int i = 0; i < c.shape(0).rank(); ++i)
    if (i != 1) each = each * c.shape(0)[i];
  c.check(!a.training || !(each == Dim(1)), "one value a channel has no variance",
          "more than one example or position in training", "evaluate instead (training = false)");
  c.out(c.in(0));
  c.out(c.in(3));
  c.out(c.in(4));
  for (int i = 0; i < 2; ++i) c.out(statistics_type(c.dtype(0)), per_channel);
}

// y, new running mean, new running variance, mean, rstd.
std::vector<Tensor> body(const BatchNormAttrs& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[0].dtype());
  const Tensor x = cast(in[0], wide);
  const Ints axes = but_channels(x);
  const Tensor old_mean = cast(in[3], wide), old_var = cast(in[4], wide);
  Tensor m = old_mean, variance = old_var, new_mean = old_mean, new_var = old_var;
  if (a.training) {
    const Tensor n = element_count(x, axes, wide), one = scalar_like(n, 1);
    const Tensor at_least_one = maximum(n, one);
    m = sum(x, axes) / at_least_one;
    variance = sum(square(x - channels(m, x)), axes) / at_least_one;
    const Tensor unbiased = variance * (n / maximum(n - 1, one));
    // Where there is nothing to see, the running statistics stay.
    const Tensor share = minimum(n, one) * a.momentum;
    new_mean = old_mean + share * (m - old_mean);
    new_var = old_var + share * (unbiased - old_var);
  }
  const Tensor rstd = rsqrt(variance + a.eps);
  const Tensor xhat = (x - channels(m, x)) * channels(rstd, x);
  const Tensor y = xhat * channels(cast(in[1], wide), x) + channels(cast(in[2], wide), x);
  return {cast(y, in[0].dtype()), cast(new_mean, in[3].dtype()), cast(new_var, in[4].dtype()), m,
          rstd};
}

Tensor plus(const Tensor& a, const Tensor& b) { return a.is_defined() ? a + b : b; }

// What reaches the batch's mean and rstd other than through y: directly, and through the running
// statistics. Either may stay undefined.
struct StatisticsGradient {
  Tensor mean, rstd;
};

StatisticsGradient statistics_gradient(const BatchNormAttrs& a, Vjp& g) {
  StatisticsGradient d;
  if (g.has_cotangent(3)) d.mean = g.cotangent(3);
  if (g.has_cotangent(4)) d.rstd = g.cotangent(4);
  if (!a.training) return d;
  if (g.has_cotangent(1))
    d.mean = plus(d.mean, cast(g.cotangent(1), g.out(4).dtype()) * a.momentum);
  if (g.has_cotangent(2)) {  // variance = rstd^-2 - eps
    const DType wide = g.out(4).dtype();
    const Tensor n = element_count(g.in(0), but_channels(g.in(0)), wide);
    const Tensor weight = n / maximum(n - 1, scalar_like(n, 1)) * (-2 * a.momentum);
    const Tensor& rstd = g.out(4);
    d.rstd = plus(d.rstd, cast(g.cotangent(2), wide) * weight / (rstd * rstd * rstd));
  }
  return d;
}

// mean and rstd as functions of x (training), or of the running statistics (evaluation).
void give_statistics(const BatchNormAttrs& a, const StatisticsGradient& d, Vjp& g, Tensor dx) {
  const Tensor rstd = g.out(4);
  if (!a.training) {
    if (dx.is_defined() && g.needs(0)) g.give(0, dx);
    const Tensor dvar = d.rstd.is_defined() ? d.rstd * rstd * rstd * rstd * -0.5 : Tensor();
    Tensor to_mean = d.mean, to_var = dvar;
    if (g.has_cotangent(1)) to_mean = plus(to_mean, cast(g.cotangent(1), rstd.dtype()));
    if (g.has_cotangent(2)) to_var = plus(to_var, cast(g.cotangent(2), rstd.dtype()));
    if (g.needs(3) && to_mean.is_defined()) g.give(3, cast(to_mean, g.in(3).dtype()));
    if (g.needs(4) && to_var.is_defined()) g.give(4, cast(to_var, g.in(4).dtype()));
    return;
  }
  if (g.needs(3) && g.has_cotangent(1)) g.give(3, g.cotangent(1) * (1 - a.momentum));
  if (g.needs(4) && g.has_cotangent(2)) g.give(4, g.cotangent(2) * (1 - a.momentum));
  if (!g.needs(0)) return;
  const DType wide = rstd.dtype();
  const Tensor x = cast(g.in(0), wide);
  const Tensor n = element_count(x, but_channels(x), wide);
  if (d.mean.is_defined()) {
    const Tensor each = broadcast_like(channels(d.mean / n, x), x);
    dx = plus(dx, cast(each, g.in(0).dtype()));
  }
  if (d.rstd.is_defined()) {
    const Tensor each = channels(d.rstd * rstd * rstd * rstd / n, x);
    dx = plus(dx, cast(-((x - channels(g.out(3), x)) * each), g.in(0).dtype()));
  }
  if (dx.is_defined()) g.give(0, dx);
}

void vjp(const BatchNormAttrs& a, Vjp& g) {
  StatisticsGradient statistics = statistics_gradient(a, g);
  Tensor dx;
  if (g.has_cotangent(0)) {
    const std::vector<Operand> in = {g.cotangent(0), g.in(0), g.out(3), g.out(4), g.in(1)};
    const auto d = emit_op("batch_norm_grad", to_attrs(BatchNormGradAttrs{a.training}), in);
    dx = d[0];
    if (g.needs(1)) g.give(1, d[1]);
    if (g.needs(2)) g.give(2, d[2]);
    if (!a.training && (g.needs(3) || g.needs(4))) {
      // y = (x - mean) rstd scale + shift, with dscale = sum(dy xhat) and dshift = sum(dy).
      const DType wide = g.out(4).dtype();
      const Tensor scale = cast(g.in(1), wide);
      const Tensor& rstd = g.out(4);
      statistics.mean = plus(statistics.mean, -(cast(d[2], wide) * scale * rstd));
      statistics.rstd = plus(statistics.rstd, cast(d[1], wide) * scale / rstd);
    }
  }
  give_statistics(a, statistics, g, dx);
}

void samples(Samples& s) {
  const auto one = [&](BatchNormAttrs a, Shape x, DType statistics = DType::F32) -> Sample& {
    const Shape p{x[1]};
    const bool fixed = statistics == DType::F64;
    std::vector<SampleInput> in = {{x, Fill::Normal, 0, 0, 2, statistics, fixed}};
    for (int i = 0; i < 2; ++i) in.push_back({p, Fill::Uniform, 0.5, 1.5, 1, statistics, fixed});
    in.push_back({p, Fill::Normal, 0, 0, 1, statistics, true});
    in.push_back({p, Fill::Uniform, 0.5, 1.5, 1, statistics, true});
    return s.add(a, std::move(in));
  };
  for (bool training : {true, false}) {
    one({training}, {4, 3, 3, 5});
    one({training, 0.3, 1e-3}, {7, 5});
    one({training, 0.3, 1e-3}, {5, 3, 2}, DType::F64).note = "all in f64";
    one({training}, {1, 2, 17});
    one({training}, {3, 1, 4097});
    one({training}, {6, 4097, 1});
    Sample& kept = one({training}, {3, 4, 2, 3});
    kept.note = "parameters in f32";
    for (int i : {1, 2}) kept.in[i].fixed_dtype = true;
  }
  for (bool training : {true, false}) one({training}, {0, 3, 2}).note = "no example";
  Sample& special = one({true}, {3, 4, 8});
  special.in[0].fill = Fill::Special;
  special.note = "special values";
  special.gradient = false;
}

OpDef batch_norm_op() {
  return define<BatchNormAttrs>({
      .name = "batch_norm",
      .doc =
          "Normalises each channel over the batch and all positions, with the batch's statistics "
          "or the running ones, then scales and shifts; also gives the new running statistics "
          "and the mean and 1 / deviation that were used, in fp32.",
      .infer = infer,
      .numeric = Numeric::Widen,
      .meaning = Body<BatchNormAttrs>(body),
      .vjp = VjpOf<BatchNormAttrs>(vjp),
      .cost = [](const BatchNormAttrs&, CallTypes in,
                 CallTypes out) { return elementwise_cost(8, in, out); },
      .labels = "n c ..., c, c, c, c -> n c ..., c, c, c, c",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"BatchNormalization", 15},
      .samples = samples,
      .is_norm = true,
      .keep_inputs = {1, 2, 3, 4},
  });
}

void infer_grad(const BatchNormGradAttrs&, Infer& c) {
  c.need_count(5);
  check_image(1, c);
  c.need_same_dtype(0, 1);
  c.need_same_shape(0, 1);
  infer_norm_gradients(Shape{c.shape(1)[1]}, Shape{c.shape(1)[1]}, true, c);
}

std::vector<Tensor> grad_body(const BatchNormGradAttrs& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[1].dtype());
  const Tensor dy = cast(in[0], wide), x = cast(in[1], wide);
  const Tensor m = channels(cast(in[2], wide), x), rstd = channels(cast(in[3], wide), x);
  const Tensor xhat = (x - m) * rstd;
  const Ints axes = but_channels(x);
  const Tensor dscale = sum(dy * xhat, axes), dshift = sum(dy, axes);
  Tensor d = dy;
  if (a.training) {
    const Tensor n = element_count(x, axes, wide);
    d = dy - channels(dshift / n, x) - xhat * channels(dscale / n, x);
  }
  const Tensor dx = d * rstd * channels(cast(in[4], wide), x);
  return {cast(dx, in[1].dtype()), cast(dscale, in[4].dtype()), cast(dshift, in[4].dtype())};
}

void grad_samples(Samples& s) {
  const auto one = [&](bool training, Shape x, DType statistics = DType::F32) -> Sample& {
    const Shape p{x[1]};
    const bool fixed = statistics == DType::F64;
    return s.add(BatchNormGradAttrs{training},
                 {{x, Fill::Normal, 0, 0, 1, statistics, fixed},
                  {x, Fill::Normal, 0, 0, 2, statistics, fixed},
                  {p, Fill::Normal, 0, 0, 0.2, statistics, true},
                  {p, Fill::Uniform, 0.5, 1.5, 1, statistics, true},
                  {p, Fill::Uniform, 0.5, 1.5, 1, statistics, fixed}});
  };
  for (bool training : {true, false}) {
    one(training, {4, 3, 3, 5});
    one(training, {7, 5});
    one(training, {1, 2, 17});
    one(training, {5, 3, 2}, DType::F64).note = "all in f64";
    one(training, {3, 1, 4097});
    one(training, {2, 4097, 1});
    Sample& kept = one(training, {3, 4, 2, 3});
    kept.note = "scale in f32";
    kept.in[4].fixed_dtype = true;
  }
  one(false, {0, 3, 2});
  const Shape x{3, 4, 17};
  s.add_special(BatchNormGradAttrs{true}, one(true, x).in, {0, 1});
  s.add_special(BatchNormGradAttrs{false}, one(false, x).in, {0, 1, 4});
}

OpDef batch_norm_grad_op() {
  return define<BatchNormGradAttrs>({
      .name = "batch_norm_grad",
      .doc = "Gradients of batch_norm: from dy, x, the mean and rstd that were used and the scale, "
             "to dx, dscale and dshift.",
      .infer = infer_grad,
      .numeric = Numeric::Widen,
      .meaning = Body<BatchNormGradAttrs>(grad_body),
      .vjp = FromBody{},
      .cost = [](const BatchNormGradAttrs&, CallTypes in,
                 CallTypes out) { return elementwise_cost(12, in, out.subspan(0, 1)); },
      .labels = "n c ..., n c ..., c, c, c -> n c ..., c, c",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = grad_samples,
      .is_norm = true,
      .keep_inputs = {2, 3, 4},
  });
}

}  // namespace

std::vector<OpDef> batch_norm_ops() { return {batch_norm_op(), batch_norm_grad_op()}; }

BatchNormResult batch_norm(Operand x, Operand scale, Operand shift, Operand running_mean,
                           Operand running_var, const BatchNormAttrs& attrs) {
  const auto out = emit_op("batch_norm", to_attrs(attrs),
                           std::vector<Operand>{x, scale, shift, running_mean, running_var});
  return {out[0], out[1], out[2]};
}

}  // namespace aloft

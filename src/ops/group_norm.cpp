#include "ops/group_norm.h"

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

// [N, C, ...] as [N, groups, C / groups * ...], so that a group is a row.
Tensor grouped(const Tensor& x, std::int64_t groups) {
  const Shape s = x.shape();
  std::int64_t row = 1;
  for (int i = 1; i < s.rank(); ++i) row *= s[i].max();
  return reshape(x, {s[0], groups, groups > 0 ? row / groups : 0});
}

void check_groups(std::int64_t groups, int x, Infer& c) {
  c.need_float(x);
  c.need_rank(x, 2);
  const Dim channels = c.shape(x)[1];
  c.check(groups > 0 && channels.is_constant() && channels.max() % groups == 0,
          std::to_string(groups) + " groups do not divide " + channels.str() + " channels",
          "a number of groups that divides x's second dimension");
  for (int d = 2; d < c.shape(x).rank(); ++d)
    c.check(c.shape(x)[d].is_constant(), "a dimension but the batch is symbolic",
            "constant channels and positions");
}

void infer(const GroupNormAttrs& a, Infer& c) {
  c.need_count(1, 3);
  check_eps(a.eps, c);
  check_groups(a.groups, 0, c);
  check_norm_parameters(Shape{c.shape(0)[1]}, c);
  c.out(c.in(0));
  for (int i = 0; i < 2; ++i) c.out(statistics_type(c.dtype(0)), Shape{c.shape(0)[0], a.groups});
}

std::vector<Tensor> body(const GroupNormAttrs& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[0].dtype());
  const Standardised s = standardised(grouped(cast(in[0], wide), a.groups), {-1}, a.eps);
  Tensor y = reshape(s.xhat, in[0].shape());
  if (in.size() > 1) y = y * channels(cast(in[1], wide), y);
  if (in.size() > 2) y = y + channels(cast(in[2], wide), y);
  const Shape rows{in[0].dim(0), a.groups};
  return {cast(y, in[0].dtype()), reshape(s.mean, rows), reshape(s.rstd, rows)};
}

void vjp(const GroupNormAttrs& a, Vjp& g) {
  give_norm_gradients(
      "group_norm_grad", to_attrs(GroupNormGradAttrs{a.groups, g.count() > 2}), 2, g,
      [&](const Tensor& x) { return through_mean_and_rstd(grouped(x, a.groups), {-1}, g); });
}

void samples(Samples& s) {
  const auto one = [&](std::int64_t groups, Shape x, int parameters) -> Sample& {
    const Shape p{x[1]};
    std::vector<SampleInput> in = {{std::move(x), Fill::Normal, 0, 0, 2}};
    for (int i = 0; i < parameters; ++i) in.push_back({p, Fill::Uniform, 0.5, 1.5});
    return s.add(GroupNormAttrs{groups}, std::move(in));
  };
  one(3, {2, 6, 3, 4}, 2);
  one(1, {3, 4, 7}, 2);
  one(4, {2, 4, 5}, 1);
  one(2, {3, 4, 5}, 0);
  one(1, {3, 5}, 2);
  one(2, {3, 4, 17}, 1);
  one(2, {0, 4, 3}, 2);
  one(2, {1, 2, 4097}, 2);
  Sample& kept = one(2, {2, 4, 3, 3}, 2);
  kept.note = "parameters in f32";
  for (int i : {1, 2}) kept.in[i].fixed_dtype = true;
  s.add(GroupNormAttrs{2}, {{{3, 4, 8}, Fill::Special}}, "special values").gradient = false;
}

OpDef group_norm_op() {
  return define<GroupNormAttrs>({
      .name = "group_norm",
      .doc =
          "Normalises each group of channels of an example to mean 0 and variance 1, then scales "
          "and shifts each channel; also gives mean and 1 / deviation in fp32.",
      .infer = infer,
      .numeric = Numeric::Widen,
      .meaning = Body<GroupNormAttrs>(body),
      .vjp = VjpOf<GroupNormAttrs>(vjp),
      .cost = [](const GroupNormAttrs&, CallTypes in,
                 CallTypes out) { return elementwise_cost(8, in, out); },
      .labels = "n ..., *, * -> n ..., n *, n *",
      .fusion = Fusion::RowReduce,
      .onnx = Onnx{"GroupNormalization", 21},
      .samples = samples,
      .is_norm = true,
      .keep_inputs = {1, 2},
  });
}

void infer_grad(const GroupNormGradAttrs& a, Infer& c) {
  c.need_count(4, 5);
  check_groups(a.groups, 1, c);
  c.need_same_dtype(0, 1);
  c.need_same_shape(0, 1);
  infer_norm_gradients(Shape{c.shape(1)[0], a.groups}, Shape{c.shape(1)[1]}, a.shift, c);
}

std::vector<Tensor> grad_body(const GroupNormGradAttrs& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[1].dtype());
  const Tensor dy = cast(in[0], wide), x = cast(in[1], wide);
  const Tensor gx = grouped(x, a.groups);
  const Tensor m = expand_reduced(cast(in[2], wide), gx, {-1});
  const Tensor rstd = expand_reduced(cast(in[3], wide), gx, {-1});
  const Tensor xhat = (gx - m) * rstd;
  const Tensor d = grouped(in.size() > 4 ? dy * channels(cast(in[4], wide), dy) : dy, a.groups);
  const Tensor dx = through_standardised(d, xhat, rstd, {-1});
  std::vector<Tensor> out = {reshape(cast(dx, in[1].dtype()), in[1].shape())};
  if (in.size() < 5) return out;
  const auto over = [&](const Tensor& t) { return cast(sum(t, but_channels(x)), in[4].dtype()); };
  out.push_back(over(dy * reshape(xhat, in[1].shape())));
  if (a.shift) out.push_back(over(dy));
  return out;
}

void grad_samples(Samples& s) {
  const auto one = [&](std::int64_t groups, Shape x, bool scale, bool shift,
                       DType statistics = DType::F32) -> Sample& {
    const bool fixed = statistics == DType::F64;
    std::vector<SampleInput> in = {{x, Fill::Normal, 0, 0, 1, statistics, fixed},
                                   {x, Fill::Normal, 0, 0, 2, statistics, fixed}};
    in.push_back({{x[0], groups}, Fill::Normal, 0, 0, 0.2, statistics, true});
    in.push_back({{x[0], groups}, Fill::Uniform, 0.5, 1.5, 1, statistics, true});
    if (scale) in.push_back({{x[1]}, Fill::Uniform, 0.5, 1.5, 1, statistics, fixed});
    return s.add(GroupNormGradAttrs{groups, shift}, std::move(in));
  };
  one(3, {2, 6, 3, 4}, true, true);
  one(3, {2, 6, 3}, true, true, DType::F64).note = "all in f64";
  one(1, {3, 4, 7}, true, false);
  one(2, {3, 4, 5}, false, false);
  one(1, {3, 5}, true, true);
  one(2, {3, 4, 17}, true, false);
  one(2, {0, 4, 3}, true, true);
  one(2, {1, 2, 4097}, true, true);
}

OpDef group_norm_grad_op() {
  return define<GroupNormGradAttrs>({
      .name = "group_norm_grad",
      .doc = "Gradients of group_norm: from dy, x, mean, rstd and the scale to dx, and where there "
             "is a scale, to its gradient and the shift's.",
      .infer = infer_grad,
      .numeric = Numeric::Widen,
      .meaning = Body<GroupNormGradAttrs>(grad_body),
      .vjp = FromBody{},
      .cost = [](const GroupNormGradAttrs&, CallTypes in,
                 CallTypes out) { return elementwise_cost(14, in, out.subspan(0, 1)); },
      .labels = "n ..., n ..., n *, n *, * -> n ..., *, *",
      .fusion = Fusion::RowReduce,
      .onnx = no_onnx(),
      .samples = grad_samples,
      .is_norm = true,
      .keep_inputs = {2, 3, 4},
  });
}

}  // namespace

std::vector<OpDef> group_norm_ops() { return {group_norm_op(), group_norm_grad_op()}; }

Tensor group_norm(Operand x, std::int64_t groups, const Tensor& scale, const Tensor& shift,
                  double eps) {
  std::vector<Operand> in = {x};
  if (scale.is_defined() || shift.is_defined()) in.push_back(scale);
  if (shift.is_defined()) in.push_back(shift);
  return emit_op("group_norm", to_attrs(GroupNormAttrs{groups, eps}), in)[0];
}

}  // namespace aloft

#include "ops/rms_norm.h"

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

Shape rows_of(const Shape& s) { return Shape(std::vector<Dim>(s.begin(), s.end() - 1)); }

void check_row(int x, Infer& c) {
  c.check(c.shape(x)[-1].is_constant(), "the normalised axis is symbolic",
          "a constant last dimension");
}

void infer(const RmsNormAttrs& a, Infer& c) {
  c.need_count(1, 2);
  check_eps(a.eps, c);
  c.need_float(0);
  c.need_rank(0, 1);
  check_row(0, c);
  check_norm_parameters(Shape{c.shape(0)[-1]}, c);
  c.out(c.in(0));
  c.out(statistics_type(c.dtype(0)), rows_of(c.shape(0)));
}

std::vector<Tensor> body(const RmsNormAttrs& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[0].dtype());
  const Tensor x = cast(in[0], wide);
  const Tensor r = rsqrt(mean(square(x), {-1}, true) + a.eps);
  Tensor y = x * r;
  if (in.size() > 1) y = y * cast(in[1], wide);
  return {cast(y, in[0].dtype()), reshape(r, rows_of(in[0].shape()))};
}

void vjp(const RmsNormAttrs&, Vjp& g) {
  // d rstd / dx = -rstd^3 x / n
  give_norm_gradients("rms_norm_grad", {}, 1, g, [&](const Tensor& x) {
    const Tensor& r = g.out(1);
    const Tensor each = g.cotangent(1) * r * r * r / element_count(x, {-1}, x.dtype());
    return -(x * expand_reduced(each, x, {-1}));
  });
}

void samples(Samples& s) {
  for (const Shape& x :
       {Shape{3, 17}, Shape{2, 3, 8}, Shape{5}, Shape{0, 4}, Shape{2, 1}, Shape{2, 4097}}) {
    s.add(RmsNormAttrs{}, {{x, Fill::Normal, 0, 0, 2}, {Shape{x[-1]}, Fill::Uniform, 0.5, 1.5}});
  }
  s.add(RmsNormAttrs{}, {{{3, 8}}}, "without a scale");
  s.add(RmsNormAttrs{}, {{{3, 17}}, {{17}, Fill::Uniform, 0.5, 1.5, 1, DType::F32, true}},
        "scale in f32");
  s.add(RmsNormAttrs{}, {{{8, 16}, Fill::Special}}, "special values").gradient = false;
}

OpDef rms_norm_op() {
  return define<RmsNormAttrs>({
      .name = "rms_norm",
      .doc = "Divides the last axis by its root mean square, then scales; also gives the inverse "
             "root mean square in fp32.",
      .infer = infer,
      .numeric = Numeric::Widen,
      .meaning = Body<RmsNormAttrs>(body),
      .vjp = VjpOf<RmsNormAttrs>(vjp),
      .cost = [](const RmsNormAttrs&, CallTypes in,
                 CallTypes out) { return elementwise_cost(5, in, out); },
      .labels = "... *, * -> ... *, ...",
      .fusion = Fusion::RowReduce,
      .onnx = Onnx{"RMSNormalization", 23},
      .samples = samples,
      .is_norm = true,
      .keep_inputs = {1},
  });
}

void infer_grad(const NoAttrs&, Infer& c) {
  c.need_count(3, 4);
  c.need_float(0);
  c.need_same_dtype(0, 1);
  c.need_same_shape(0, 1);
  c.need_rank(1, 1);
  check_row(1, c);
  c.need_float(2);
  c.need_shape(2, rows_of(c.shape(1)));
  c.out(c.in(1));
  if (c.count() < 4) return;
  check_norm_parameter(3, Shape{c.shape(1)[-1]}, 1, c);
  c.out(c.in(3));
}

// With xhat = x rstd and d = dy scale:  dx = rstd (d - xhat mean(d xhat)).
std::vector<Tensor> grad_body(const NoAttrs&, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[1].dtype());
  const Tensor dy = cast(in[0], wide), x = cast(in[1], wide);
  const Tensor r = expand_reduced(cast(in[2], wide), x, {-1});
  const Tensor xhat = x * r;
  const Tensor d = in.size() > 3 ? dy * cast(in[3], wide) : dy;
  const Tensor dx = r * (d - xhat * mean(d * xhat, {-1}, true));
  std::vector<Tensor> out = {cast(dx, in[1].dtype())};
  if (in.size() < 4) return out;
  const Tensor each = dy * xhat;
  out.push_back(cast(sum_to(each, in[3]), in[3].dtype()));
  return out;
}

void grad_samples(Samples& s) {
  const auto one = [&](Shape x, bool scale, bool kept, DType statistics = DType::F32) -> Sample& {
    const bool fixed = statistics == DType::F64;
    std::vector<SampleInput> in = {{x, Fill::Normal, 0, 0, 1, statistics, fixed},
                                   {x, Fill::Normal, 0, 0, 2, statistics, fixed}};
    in.push_back({rows_of(x), Fill::Uniform, 0.5, 1.5, 1, statistics, true});
    if (scale) in.push_back({Shape{x[-1]}, Fill::Uniform, 0.5, 1.5, 1, statistics, kept});
    return s.add(NoAttrs{}, std::move(in), kept ? "scale in a fixed type" : "");
  };
  for (const Shape& x : {Shape{3, 17}, Shape{2, 3, 8}, Shape{5}, Shape{0, 4}, Shape{2, 1},
                         Shape{2, 4097}, Shape{131, 33}})
    one(x, true, false);
  one({3, 8}, false, false);
  one({3, 17}, true, true);
  one({3, 5}, true, true, DType::F64);
  s.add_special(NoAttrs{}, one({5, 33}, true, false).in, {0, 1, 3});
}

OpDef rms_norm_grad_op() {
  return define<NoAttrs>({
      .name = "rms_norm_grad",
      .doc =
          "Gradients of rms_norm: from dy, x, rstd and the scale to dx and the scale's gradient.",
      .infer = infer_grad,
      .numeric = Numeric::Widen,
      .meaning = Body<NoAttrs>(grad_body),
      .vjp = FromBody{},
      .cost = [](const NoAttrs&, CallTypes in,
                 CallTypes out) { return elementwise_cost(10, in, out.subspan(0, 1)); },
      .labels = "... *, ... *, ..., * -> ... *, *",
      .fusion = Fusion::RowReduce,
      .onnx = no_onnx(),
      .samples = grad_samples,
      .is_norm = true,
      .keep_inputs = {2, 3},
  });
}

}  // namespace

std::vector<OpDef> rms_norm_ops() { return {rms_norm_op(), rms_norm_grad_op()}; }

Tensor rms_norm(Operand x, const Tensor& scale, double eps) {
  std::vector<Operand> in = {x};
  if (scale.is_defined()) in.push_back(scale);
  return emit_op("rms_norm", to_attrs(RmsNormAttrs{eps}), in)[0];
}

}  // namespace aloft

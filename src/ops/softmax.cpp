#include "ops/softmax.h"

#include "ops/binary.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/unary.h"

namespace aloft {
namespace {

using A = SoftmaxAttrs;

void infer(const A& a, Infer& c) {
  c.need_count(1);
  c.need_float(0);
  c.axis(0, a.axis);
  c.out(c.in(0));
}

Cost cost(const A&, CallTypes in, CallTypes out) { return elementwise_cost(14, in, out); }

void samples(Samples& s) {
  for (const Shape& shape : {Shape{3, 17}, Shape{1, 1}, Shape{2, 0, 4}, Shape{2, 4097}})
    s.add(A{}, {{shape, Fill::Normal, 0, 0, 2}});
  s.add(A{1}, {{{2, 5, 3}}}, "an inner axis");
  s.add(A{0}, {{{5}}});
  s.add(A{}, {{{3, 8}, Fill::Uniform, -1e4, -9e3}}, "hugely negative").gradient = false;
  s.add(A{}, {{{3, 8}, Fill::Constant, 3, 3}}, "all equal");
  s.add(A{}, {{{3, 8}, Fill::Constant, -1e30}}, "hugely negative and equal").gradient = false;
  s.add(A{1}, {{{3, 8, 2}, Fill::Uniform, 1e6, 1e6 + 4}}, "all huge").gradient = false;
  s.add(A{}, {{{8, 16}, Fill::Special}}, "special values").gradient = false;
}

OpDef softmax_op() {
  return define<A>({
      .name = "softmax",
      .doc = "exp(x - max(x)), normalised along `axis`.",
      .infer = infer,
      .numeric = Numeric::Widen,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> x) -> std::vector<Tensor> {
        const Tensor e = exp(x[0] - max(x[0], {a.axis}, true));
        return {e / sum(e, {a.axis}, true)};
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0))
          g.give(0, emit_one("softmax_grad", to_attrs(a), {g.cotangent(0), g.out(0)}));
      }),
      .cost = cost,
      .labels = "*",
      .fusion = Fusion::RowReduce,
      .onnx = Onnx{"Softmax", 13},
      .samples = samples,
  });
}

OpDef log_softmax_op() {
  return define<A>({
      .name = "log_softmax",
      .doc = "x - logsumexp(x) along `axis`.",
      .infer = infer,
      .numeric = Numeric::Widen,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> x) -> std::vector<Tensor> {
        const Tensor shifted = x[0] - max(x[0], {a.axis}, true);
        return {shifted - log(sum(exp(shifted), {a.axis}, true))};
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0))
          g.give(0, emit_one("log_softmax_grad", to_attrs(a), {g.cotangent(0), g.out(0)}));
      }),
      .cost = cost,
      .labels = "*",
      .fusion = Fusion::RowReduce,
      .onnx = Onnx{"LogSoftmax", 13},
      .samples = samples,
  });
}

void infer_grad(const A& a, Infer& c) {
  c.need_count(2);
  c.need_float(0);
  c.need_same_dtype(0, 1);
  c.need_same_shape(0, 1);
  c.axis(0, a.axis);
  c.out(c.in(0));
}

void grad_samples(Samples& s) {
  const auto add = [&](A a, const Shape& shape, const char* note = "") {
    s.add(a, {{shape}, {shape, Fill::Uniform, -1, 1}}, note);
  };
  for (const Shape& shape : {Shape{3, 17}, Shape{1, 1}, Shape{2, 0, 4}, Shape{2, 4097}})
    add({}, shape);
  add({1}, {2, 5, 3}, "an inner axis");
  add({0}, {5});
  add({0}, {7, 300}, "an outer axis");
  for (const std::int64_t axis : {0, 1})
    s.add_special(A{axis}, {{{7, 17}}, {{7, 17}, Fill::Uniform, -1, 1}}, {0, 1});
}

// From dy and the op's own result y.
OpDef grad_op(const char* name, const char* doc, Body<A> meaning) {
  return define<A>({
      .name = name,
      .doc = doc,
      .infer = infer_grad,
      .numeric = Numeric::Widen,
      .meaning = std::move(meaning),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(6, in, out); },
      .labels = "*, *",
      .fusion = Fusion::RowReduce,
      .onnx = no_onnx(),
      .samples = grad_samples,
  });
}

std::vector<Tensor> softmax_grad(const A& a, std::span<const Tensor> in) {
  const Tensor &dy = in[0], &y = in[1];
  return {y * (dy - sum(dy * y, {a.axis}, true))};
}

std::vector<Tensor> log_softmax_grad(const A& a, std::span<const Tensor> in) {
  const Tensor &dy = in[0], &y = in[1];
  return {dy - exp(y) * sum(dy, {a.axis}, true)};
}

}  // namespace

std::vector<OpDef> softmax_ops() {
  return {
      softmax_op(), log_softmax_op(),
      grad_op("softmax_grad", "dx = y (dy - <dy, y>) of y = softmax(x) along `axis`.",
              Body<A>(softmax_grad)),
      grad_op("log_softmax_grad", "dx = dy - exp(y) sum(dy) of y = log_softmax(x) along `axis`.",
              Body<A>(log_softmax_grad))};
}

Tensor softmax(Operand x, std::int64_t axis) {
  return emit_one("softmax", to_attrs(SoftmaxAttrs{axis}), {x});
}
Tensor log_softmax(Operand x, std::int64_t axis) {
  return emit_one("log_softmax", to_attrs(SoftmaxAttrs{axis}), {x});
}

}  // namespace aloft

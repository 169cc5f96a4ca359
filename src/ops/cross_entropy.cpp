#include "ops/cross_entropy.h"

#include <limits>

#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/check_indices.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/identity.h"
#include "ops/kept_type.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace aloft {
namespace {

using A = CrossEntropyAttrs;

Shape rows_of(const Shape& s) { return Shape(std::vector<Dim>(s.begin(), s.end() - 1)); }

void check_operands(const A& a, Infer& c) {
  c.need_rank(0, 1);
  c.need_float(0);
  c.check(c.shape(0)[-1].is_constant() && c.shape(0)[-1].max() > 0, "there are no classes",
          "a constant, positive last dimension of the logits");
  c.need_integer(1);
  c.need_shape(1, rows_of(c.shape(0)));
  c.check(a.reduction == "mean" || a.reduction == "sum", "unknown reduction '" + a.reduction + "'",
          "\"mean\" or \"sum\"");
  c.check(a.label_smoothing >= 0 && a.label_smoothing <= 1, "label_smoothing is out of range",
          "a probability from 0 to 1");
}

void infer(const A& a, Infer& c) {
  c.need_count(2);
  check_operands(a, c);
  c.out(statistics_type(c.dtype(0)), Shape{});
}

// What both bodies need of the targets, each of a row's shape: which rows count, which of those
// have no class, and the mask [..., V] of the target's class. A row that is ignored is not wrong:
// a factor NaN there would meet the zero of its gradient when the gradient is differentiated.
struct Rows {
  Tensor counts, wrong, hit;
};

Rows rows_from(const A& a, const Tensor& logits, const Tensor& targets) {
  const Tensor t = cast(targets, DType::I64);
  const std::int64_t classes = logits.dim(-1).max();
  Rows r;
  r.counts = not_equal(t, scalar_like(t, static_cast<double>(a.ignore_index)));
  const Tensor below = less(t, scalar_like(t, static_cast<double>(classes)));
  const Tensor none = cast(scalar_like(t, 0), DType::Bool);
  const Tensor valid = where(greater_equal(t, scalar_like(t, 0)), below, none);
  r.wrong = where(valid, none, r.counts);
  EmitterScope scope(*logits.emitter());
  const Tensor numbers = iota(classes, DType::I64);  // named: compilers order arguments differently
  r.hit = equal(expand_reduced(t, logits, {-1}), numbers);
  return r;
}

// Divisor of the mean: the rows that count, at least 1.
Tensor divisor(const Tensor& counts, DType wide) {
  const Tensor n = sum(cast(counts, wide));
  return maximum(n, scalar_like(n, 1));
}

Tensor nan_like(const Tensor& x) {
  return scalar_like(x, std::numeric_limits<double>::quiet_NaN());
}

// The largest logit is taken off before anything is summed, and never added again: logits of 1e6
// stand so far apart in f32 that the loss would be lost between them. What is taken off changes
// nothing, so no gradient goes through it: it would leave rounding errors at the largest logit.
struct Shifted {
  Tensor x, e, sum;  // x - max(x), its exponentials, and their sums [..., 1]
  explicit Shifted(const Tensor& logits)
      : x(logits - detach(max(logits, {-1}, true))), e(exp(x)), sum(aloft::sum(e, {-1}, true)) {}
};

std::vector<Tensor> body(const A& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[0].dtype());
  const Tensor x = cast(in[0], wide);
  const Rows rows = rows_from(a, x, in[1]);
  const Shifted shifted(x);
  const Tensor zero = scalar_like(x, 0);
  const Tensor target = sum(where(rows.hit, shifted.x, zero), {-1});
  Tensor loss = reshape(log(shifted.sum), in[1].shape()) - target * (1 - a.label_smoothing);
  if (a.label_smoothing > 0) loss = loss - mean(shifted.x, {-1}) * a.label_smoothing;
  loss = where(rows.wrong, nan_like(x), loss);
  Tensor total = sum(where(rows.counts, loss, zero));
  if (a.reduction == "mean") total = total / divisor(rows.counts, wide);
  return {total};
}

void vjp(const A& a, Vjp& g) {
  if (g.needs(0))
    g.give(0, emit_one("cross_entropy_grad", to_attrs(a), {g.in(0), g.in(1), g.cotangent(0)}));
}

// One list of calls for both ops; the gradient's has an operand more.
void add_samples(Samples& s, bool grad) {
  const auto one = [&](A a, Shape x, double lo, double hi, DType type,
                       std::string note) -> Sample& {
    const Shape rows = rows_of(x);
    std::vector<SampleInput> in = {{x, Fill::Normal, 0, 0, 3}, ids(rows, lo, hi, type)};
    if (grad) in.push_back({Shape{}, Fill::Uniform, 0.5, 1.5, 1, DType::F32, true});
    return s.add(a, std::move(in), std::move(note));
  };
  one({}, {5, 17}, 0, 17, DType::I32, "");
  one({}, {2, 3, 8}, 0, 8, DType::I64, "");
  one({}, {4}, 0, 4, DType::I32, "one row");
  one({}, {3, 1}, 0, 1, DType::I32, "one class");
  one({}, {0, 4}, 0, 4, DType::I32, "no row");
  one({2}, {11, 4}, 0, 4, DType::I32, "ignored rows");
  one({0}, {3, 4}, 0, 1, DType::I32, "every row ignored");
  one({-100, 0, "sum"}, {5, 17}, 0, 17, DType::I32, "");
  one({-100, 0.1}, {5, 17}, 0, 17, DType::I32, "");
  one({3, 0.3, "sum"}, {11, 5}, 0, 5, DType::I64, "");
  one({}, {3, 4097}, 0, 4097, DType::I32, "");
  one({}, {70, 33}, 0, 33, DType::I32, "");
  Sample& f64 = one({-100, 0.1}, {3, 4}, 0, 4, DType::I32, "all in f64");
  f64.in = all_in_f64(std::move(f64.in));
  one({}, {5, 4}, -1, 6, DType::I32, "targets outside the classes").gradient = false;
  const auto logits = [&](A a, SampleInput x, std::string note) {
    Sample& sample = one(a, x.shape, 0, 8, DType::I32, std::move(note));
    sample.in[0] = std::move(x);
    sample.gradient = false;
  };
  logits({}, {{8, 16}, Fill::Special}, "special values");
  logits({}, {{3, 8}, Fill::Uniform, -1e4, -9e3}, "hugely negative");
  logits({-100, 0.1}, {{3, 8}, Fill::Uniform, 1e6, 1e6 + 4}, "all huge, close together");
  logits({}, {{3, 8}, Fill::Constant, -1e30}, "hugely negative and equal");
}

OpDef cross_entropy_op() {
  return define<A>({
      .name = "cross_entropy",
      .doc = "Cross-entropy of logits against class indices. The mean over no rows is 0; a target "
             "outside the classes gives NaN.",
      .infer = infer,
      .numeric = Numeric::Widen,
      .meaning = Body<A>(body),
      .vjp = VjpOf<A>(vjp),
      .cost =
          [](const A&, CallTypes in, CallTypes out) {
            Cost c = elementwise_cost(0, in, out);
            c.flops = 12.0 * static_cast<double>(in[0].shape.max_numel());
            return c;
          },
      .labels = "... *, ... -> ",
      .fusion = Fusion::RowReduce,
      .onnx = Onnx{"SoftmaxCrossEntropyLoss", 13},
      .samples = [](Samples& s) { add_samples(s, false); },
      .is_loss = true,
      .keep_inputs = {1},
  });
}

void infer_grad(const A& a, Infer& c) {
  c.need_count(3);
  check_operands(a, c);
  c.need_float(2);
  c.need_shape(2, Shape{});
  c.out(c.in(0));
}

// dx = (softmax(x) - (1 - s) [target] - s / V) dloss / divisor
std::vector<Tensor> grad_body(const A& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[0].dtype());
  const Tensor x = cast(in[0], wide);
  const Rows rows = rows_from(a, x, in[1]);
  const Shifted shifted(x);
  const Tensor one_hot = cast(rows.hit, wide);
  Tensor d = shifted.e / shifted.sum - one_hot * (1 - a.label_smoothing);
  if (a.label_smoothing > 0) d = d - a.label_smoothing / static_cast<double>(x.dim(-1).max());
  Tensor each = cast(in[2], wide);
  if (a.reduction == "mean") each = each / divisor(rows.counts, wide);
  const Tensor factor = where(rows.wrong, nan_like(x), each);
  const Tensor counts = expand_reduced(rows.counts, x, {-1});
  const Tensor dx = where(counts, d * expand_reduced(factor, x, {-1}), scalar_like(x, 0));
  return {cast(dx, in[0].dtype())};
}

OpDef cross_entropy_grad_op() {
  return define<A>({
      .name = "cross_entropy_grad",
      .doc = "Gradient of cross_entropy: from the logits, the targets and the loss's cotangent, in "
             "the logits' type.",
      .infer = infer_grad,
      .numeric = Numeric::Widen,
      .meaning = Body<A>(grad_body),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(20, in, out); },
      .labels = "... *, ...,  -> ... *",
      .fusion = Fusion::RowReduce,
      .onnx = no_onnx(),
      .samples = [](Samples& s) { add_samples(s, true); },
      .keep_inputs = {1, 2},
  });
}

}  // namespace

std::vector<OpDef> cross_entropy_ops() { return {cross_entropy_op(), cross_entropy_grad_op()}; }

Tensor cross_entropy(Operand logits, Operand targets, const CrossEntropyAttrs& attrs) {
  const Tensor loss = emit_one("cross_entropy", to_attrs(attrs), {logits, targets});
  check_indices("cross_entropy", "a target", targets, logits.tensor.dim(-1).max(),
                attrs.ignore_index);
  return loss;
}

}  // namespace aloft

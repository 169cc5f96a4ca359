#include "ops/losses.h"

#include <limits>
#include <type_traits>

#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/check_indices.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/kept_type.h"
#include "ops/op.h"
#include "ops/promote.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace aloft {
namespace {

void need_reduction(Infer& c, const std::string& reduction, bool batchmean = false) {
  c.check(reduction == "mean" || reduction == "sum" || reduction == "none" ||
              (batchmean && reduction == "batchmean"),
          "unknown reduction '" + reduction + "'",
          batchmean ? "mean, sum, none or batchmean" : "mean, sum or none");
}

Tensor reduced(const Tensor& each, const std::string& reduction) {
  if (reduction == "mean") return mean(each);
  if (reduction == "sum") return sum(each);
  if (reduction == "batchmean") return sum(each) / element_count(each, {0}, each.dtype());
  return each;
}

// A loss of x against a target of the same shape, element by element.
template <class A>
OpDef loss_op(const char* name, const char* doc, Tensor (*each)(const A&, Tensor x, Tensor target),
              double lo, double hi, bool batchmean = false) {
  return define<A>({
      .name = name,
      .doc = doc,
      .infer =
          [batchmean](const A& a, Infer& c) {
            c.need_count(2);
            c.need_float(0);
            c.need_same_dtype(0, 1);
            c.need_same_shape(0, 1);
            need_reduction(c, a.reduction, batchmean);
            if constexpr (std::is_same_v<A, HuberLossAttrs>)
              c.check(a.delta > 0, "delta is " + std::to_string(a.delta), "more than 0");
            if (a.reduction == "batchmean") c.need_rank(0, 1);
            c.out(statistics_type(c.dtype(0)), a.reduction == "none" ? c.shape(0) : Shape{});
          },
      .numeric = Numeric::Widen,
      .meaning = Body<A>([each](const A& a, std::span<const Tensor> in) -> std::vector<Tensor> {
        const DType wide = statistics_type(in[0].dtype());
        return {reduced(each(a, cast(in[0], wide), cast(in[1], wide)), a.reduction)};
      }),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(5, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [lo, hi](Samples& s) {
            const auto add = [&](const char* reduction, Shape shape) {
              A a;
              a.reduction = reduction;
              s.add(a, {{shape, Fill::Uniform, -2, -0.1}, {shape, Fill::Uniform, lo, hi}});
            };
            add("mean", {3, 17});
            add("sum", {2, 3, 5});
            add("none", {4097});
            add("none", {0});
            add("mean", {1});
          },
      .is_loss = true,
  });
}

Tensor huber_each(const HuberLossAttrs& a, Tensor x, Tensor target) {
  const Tensor d = x - target, size = abs(d);
  const Tensor inside = less_equal(size, scalar_like(size, a.delta));
  // Only what is near is squared: an infinite difference's square has no gradient to send back.
  const Tensor near = where(inside, d, scalar_like(d, 0));
  return where(inside, square(near) * 0.5, (size - a.delta / 2) * a.delta);
}

// log(1 + e^x) - x t as |x| (1 - t or t) + log(1 + e^-|x|): an infinite logit on its target's side
// is not taken from itself.
Tensor bce_each(const LossAttrs&, Tensor x, Tensor target) {
  const Tensor positive = greater(x, scalar_like(x, 0));
  const Tensor size = where(positive, x, -x);  // not abs(x), which has no slope at 0
  return size * where(positive, 1 - target, target) + softplus(-size);
}

Tensor kl_each(const KlDivAttrs& a, Tensor x, Tensor target) {
  if (a.log_target) return exp(target) * (target - x);
  const Tensor zero = scalar_like(target, 0), one = scalar_like(target, 1);
  const Tensor positive = greater(target, zero);
  // Where there is no probability the logarithm is not asked for, so that no gradient is NaN.
  return where(positive, target * (log(where(positive, target, one)) - x), zero);
}

std::vector<Tensor> nll_body(const NllLossAttrs& a, std::span<const Tensor> in) {
  const Tensor x = cast(in[0], statistics_type(in[0].dtype()));
  const Tensor t = cast(in[1], DType::I64);
  const std::int64_t classes = x.dim(-1).max();
  EmitterScope scope(*x.emitter());
  const Tensor numbers = iota(classes, DType::I64);
  const Tensor hit = equal(expand_reduced(t, x, {-1}), numbers);
  const Tensor zero = scalar_like(x, 0);
  const Tensor counts = not_equal(t, scalar_like(t, static_cast<double>(a.ignore_index)));
  const Tensor hits = sum(cast(hit, x.dtype()), {-1});
  // A row that counts but hits no class has no loss: it shows as NaN.
  const Tensor nan = scalar_like(x, std::numeric_limits<double>::quiet_NaN());
  const Tensor row = where(greater(hits, zero), -sum(where(hit, x, zero), {-1}), nan);
  const Tensor each = where(counts, row, zero);
  if (a.reduction != "mean") return {reduced(each, a.reduction)};
  const Tensor n = sum(cast(counts, x.dtype()));
  return {sum(each) / maximum(n, scalar_like(n, 1))};
}

OpDef nll_loss_op() {
  using A = NllLossAttrs;
  return define<A>({
      .name = "nll_loss",
      .doc = "The negative log-probability of each row's target class.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(2);
            c.need_rank(0, 1);
            c.need_float(0);
            c.need_integer(1);
            c.check(c.shape(0)[-1].is_constant(), "the number of classes is symbolic",
                    "a constant last dimension");
            Shape rows = c.shape(0);
            rows.dims().pop_back();
            c.need_shape(1, rows);
            need_reduction(c, a.reduction);
            c.out(statistics_type(c.dtype(0)), a.reduction == "none" ? rows : Shape{});
          },
      .numeric = Numeric::Widen,
      .meaning = Body<A>(nll_body),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(2, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"NegativeLogLikelihoodLoss", 13},
      .samples =
          [](Samples& s) {
            s.add(A{-100, "mean"}, {{{7, 5}}, ids({7}, 0, 5)});
            s.add(A{2, "mean"}, {{{2, 9, 4}}, ids({2, 9}, 0, 4, DType::I64)}, "ignored rows");
            s.add(A{-100, "sum"}, {{{1, 4097}}, ids({1}, 0, 4097)});
            s.add(A{-100, "none"}, {{{17, 3}}, ids({17}, 0, 3)});
            s.add(A{-100, "mean"}, {{{0, 3}}, ids({0}, 0, 3)}, "no row");
            s.add(A{-100, "none"}, {{{9, 3}}, ids({9}, -1, 5)}, "no class").gradient = false;
          },
      .is_loss = true,
      .keep_inputs = {1},
  });
}

}  // namespace

std::vector<OpDef> losses_ops() {
  return {
      loss_op<LossAttrs>(
          "mse_loss", "(x - target)^2.",
          [](const LossAttrs&, Tensor x, Tensor target) { return square(x - target); }, 0.1, 2),
      loss_op<LossAttrs>(
          "l1_loss", "|x - target|.",
          [](const LossAttrs&, Tensor x, Tensor target) { return abs(x - target); }, 0.1, 2),
      loss_op<HuberLossAttrs>("huber_loss", "Squares near 0, lines beyond delta.", huber_each, 0.1,
                              2),
      loss_op<LossAttrs>("bce_with_logits",
                         "Binary cross-entropy of sigmoid(x) against probabilities.", bce_each, 0,
                         1),
      loss_op<KlDivAttrs>("kl_div", "target (log(target) - x), x logarithms of probabilities.",
                          kl_each, 0.05, 1, true),
      nll_loss_op(),
  };
}

Tensor mse_loss(Operand x, Operand target, const std::string& reduction) {
  meet(x, target);
  return emit_one("mse_loss", to_attrs(LossAttrs{reduction}), {x, target});
}
Tensor l1_loss(Operand x, Operand target, const std::string& reduction) {
  meet(x, target);
  return emit_one("l1_loss", to_attrs(LossAttrs{reduction}), {x, target});
}
Tensor huber_loss(Operand x, Operand target, double delta, const std::string& reduction) {
  meet(x, target);
  return emit_one("huber_loss", to_attrs(HuberLossAttrs{delta, reduction}), {x, target});
}
Tensor bce_with_logits(Operand x, Operand target, const std::string& reduction) {
  meet(x, target);
  return emit_one("bce_with_logits", to_attrs(LossAttrs{reduction}), {x, target});
}
Tensor kl_div(Operand x, Operand target, const std::string& reduction, bool log_target) {
  meet(x, target);
  return emit_one("kl_div", to_attrs(KlDivAttrs{log_target, reduction}), {x, target});
}
Tensor nll_loss(Operand x, Operand target, const NllLossAttrs& attrs) {
  const Tensor loss = emit_one("nll_loss", to_attrs(attrs), {x, target});
  check_indices("nll_loss", "a target", target, x.tensor.dim(-1).max(), attrs.ignore_index);
  return loss;
}

}  // namespace aloft

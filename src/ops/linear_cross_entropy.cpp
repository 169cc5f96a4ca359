#include "ops/linear_cross_entropy.h"

#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/check_indices.h"
#include "ops/kept_type.h"
#include "ops/matmul.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/step_tensors.h"
#include "ops/unary.h"

namespace aloft {
namespace {

using A = CrossEntropyAttrs;

Shape rows_of(const Shape& s) { return Shape(std::vector<Dim>(s.begin(), s.end() - 1)); }

// [..., c] -> [rows, c].
Tensor fold(const Tensor& t) { return t.rank() == 2 ? t : flatten(t, 0, t.rank() - 2); }

void check_operands(const A& a, Infer& c) {
  c.need_rank(0, 2);
  c.need_rank(1, 2, 2);
  c.need_float(0);
  c.need_same_dtype(0, 1);
  c.check(c.shape(0)[-1] == c.shape(1)[1], "the inner dimensions do not agree",
          "x's last dimension == weight's last, got " + c.shape(0)[-1].str() + " and " +
              c.shape(1)[1].str());
  c.check(c.shape(1).is_constant() && c.shape(1)[0].max() > 0, "there are no classes",
          "a weight [V, D] of constant extents with V > 0");
  c.need_integer(2);
  c.need_shape(2, rows_of(c.shape(0)));
  c.check(a.reduction == "mean" || a.reduction == "sum", "unknown reduction '" + a.reduction + "'",
          "\"mean\" or \"sum\"");
  c.check(a.label_smoothing >= 0 && a.label_smoothing <= 1, "label_smoothing is out of range",
          "a probability from 0 to 1");
}

void need_scalar(Infer& c, int i) {
  c.need_float(i);
  c.need_shape(i, Shape{});
}

Tensor logits_of(std::span<const Tensor> in) {
  const DType wide = statistics_type(in[0].dtype());
  return matmul(cast(in[0], wide), cast(in[1], wide), false, true);
}

Tensor loss_of(const A& a, const Tensor& logits, const Tensor& targets) {
  return emit_one("cross_entropy", to_attrs(a), {logits, targets});
}

// dx = dlogits weight, dweight = dlogits^T x.
std::vector<Tensor> through_product(const Tensor& dlogits, std::span<const Tensor> in) {
  const DType dtype = in[0].dtype();
  const Tensor x = cast(in[0], dlogits.dtype()), weight = cast(in[1], dlogits.dtype());
  return {cast(matmul(dlogits, weight), dtype),
          cast(matmul(fold(dlogits), fold(x), true, false), dtype)};
}

// in: x, weight, targets, dloss.
std::vector<Tensor> grad_of(const A& a, const Tensor& logits, std::span<const Tensor> in) {
  const Tensor d = emit_one("cross_entropy_grad", to_attrs(a), {logits, in[2], in[3]});
  return through_product(d, in);
}

void vjp(const A& a, Vjp& g) {
  const Operand in[] = {g.in(0), g.in(1), g.in(2), g.cotangent(0)};
  const auto d = emit_op("linear_cross_entropy_grad", to_attrs(a), in);
  for (int i : {0, 1})
    if (g.needs(i)) g.give(i, d[i]);
}

Cost cost(double products, CallTypes in, CallTypes out) {
  Cost c = elementwise_cost(0, in, out);
  const double rows = static_cast<double>(in[2].shape.max_numel());
  c.flops = rows * (2 * products * static_cast<double>(in[1].shape.max_numel()) +
                    12 * static_cast<double>(in[1].shape[0].max()));
  return c;
}

void add_samples(Samples& s, bool grad) {
  const auto one = [&](A a, Shape x, int classes, double lo, double hi, DType type,
                       std::string note) -> Sample& {
    std::vector<SampleInput> in = {{x}, {{classes, x[-1]}}, ids(rows_of(x), lo, hi, type)};
    if (grad) in.push_back({Shape{}, Fill::Uniform, 0.5, 1.5, 1, DType::F32, true});
    Sample& sample = s.add(a, std::move(in), std::move(note));
    sample.inner_roundings = 1;  // logits and their gradients may be kept in x's type
    return sample;
  };
  one({}, {5, 4}, 17, 0, 17, DType::I32, "");
  one({}, {2, 3, 8}, 9, 0, 9, DType::I64, "");
  one({}, {1, 4}, 5, 0, 5, DType::I32, "one row");
  one({}, {3, 5}, 1, 0, 1, DType::I32, "one class");
  one({}, {0, 4}, 5, 0, 5, DType::I32, "no row");
  one({2}, {11, 4}, 5, 0, 5, DType::I32, "ignored rows");
  one({0}, {3, 4}, 5, 0, 1, DType::I32, "every row ignored");
  one({-100, 0, "sum"}, {5, 3}, 17, 0, 17, DType::I32, "");
  one({3, 0.25, "sum"}, {11, 5}, 7, 0, 7, DType::I64, "");
  one({-100, 0.125}, {130, 16}, 65, 0, 65, DType::I32, "");
  one({}, {3, 2}, 4097, 0, 4097, DType::I32, "");
  one({}, {4097, 3}, 5, 0, 5, DType::I32, "");
  one({}, {3, 4097}, 5, 0, 5, DType::I32, "");
  Sample& f64 = one({-100, 0.1}, {3, 4}, 5, 0, 5, DType::I32, "all in f64");
  f64.in = all_in_f64(std::move(f64.in));
  one({}, {5, 3}, 4, -1, 6, DType::I32, "targets outside the classes").gradient = false;
}

// The logits; the logits and both gradients (the gradient op computes the logits again).
std::vector<Product> forward_products(const A&, CallTypes in, CallTypes) {
  const std::int64_t v = in[1].shape[0].max(), d = in[1].shape[1].max();
  const std::int64_t rows = d > 0 ? in[0].shape.max_numel() / d : 0;
  return {{1, rows, v, d, false, true}};
}
std::vector<Product> gradient_products(const A& a, CallTypes in, CallTypes out) {
  std::vector<Product> p = forward_products(a, in, out);
  const auto [batch, rows, v, d, ta, tb] = p[0];
  p.push_back({1, rows, d, v, false, false});
  p.push_back({1, v, d, rows, true, false});
  return p;
}

OpDef linear_cross_entropy_op() {
  return define<A>({
      .name = "linear_cross_entropy",
      .doc = "cross_entropy(x weight^T, targets) by chunks of rows. "
             "A chunk's logits may be kept in x's type.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(3);
            check_operands(a, c);
            c.out(statistics_type(c.dtype(0)), Shape{});
          },
      .numeric = Numeric::Narrow,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> in) -> std::vector<Tensor> {
        return {loss_of(a, logits_of(in), in[2])};
      }),
      .vjp = VjpOf<A>(vjp),
      .cost = [](const A&, CallTypes in, CallTypes out) { return cost(1, in, out); },
      .labels = "... *, * *, ... -> ",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = [](Samples& s) { add_samples(s, false); },
      .products = forward_products,
      .product_forms = kFormsOfF32,
      .keep_inputs = {2},
  });
}

OpDef linear_cross_entropy_grad_op() {
  return define<A>({
      .name = "linear_cross_entropy_grad",
      .doc =
          "Gradient of linear_cross_entropy from x, weight, targets and the loss's cotangent: dx "
          "and dweight. Recomputes the logits.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(4);
            check_operands(a, c);
            need_scalar(c, 3);
            c.out(c.in(0));
            c.out(c.in(1));
          },
      .numeric = Numeric::Narrow,
      .meaning = Body<A>(
          [](const A& a, std::span<const Tensor> in) { return grad_of(a, logits_of(in), in); }),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return cost(3, in, out); },
      .labels = "... *, * *, ..., -> ... *, * *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = [](Samples& s) { add_samples(s, true); },
      .products = gradient_products,
      .product_forms = kFormsOfF32,
      .listed_as = "matmul",  // eagerly there are but the products that it is made of
      .keep_inputs = {2, 3},
  });
}

OpDef linear_cross_entropy_sweep_op() {
  return define<A>({
      .name = "linear_cross_entropy_sweep",
      .doc = "linear_cross_entropy and its gradient in one sweep over chunks of rows, from x, "
             "weight, targets and the loss's cotangent: loss, dx, dweight.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(4);
            check_operands(a, c);
            need_scalar(c, 3);
            c.out(statistics_type(c.dtype(0)), Shape{});
            c.out(c.in(0));
            c.out(c.in(1));
          },
      .numeric = Numeric::Narrow,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> in) -> std::vector<Tensor> {
        const Tensor logits = logits_of(in);
        const auto d = grad_of(a, logits, in);
        return {loss_of(a, logits, in[2]), d[0], d[1]};
      }),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return cost(3, in, out); },
      .labels = "... *, * *, ..., -> , ... *, * *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = [](Samples& s) { add_samples(s, true); },
      .products = gradient_products,
      .product_forms = kFormsOfF32,
      .keep_inputs = {2, 3},
  });
}

}  // namespace

std::vector<OpDef> linear_cross_entropy_ops() {
  return {linear_cross_entropy_op(), linear_cross_entropy_grad_op(),
          linear_cross_entropy_sweep_op()};
}

Tensor linear_cross_entropy(Operand x, Operand weight, Operand targets,
                            const CrossEntropyAttrs& attrs) {
  const Tensor loss = emit_one("linear_cross_entropy", to_attrs(attrs), {x, weight, targets});
  check_indices("linear_cross_entropy", "a target", targets, weight.tensor.dim(0).max(),
                attrs.ignore_index);
  return loss;
}

LossAndGradients linear_cross_entropy_sweep(Operand x, Operand weight, Operand targets,
                                            Operand dloss, const CrossEntropyAttrs& attrs) {
  const Operand in[] = {x, weight, targets, dloss};
  const auto out = emit_op("linear_cross_entropy_sweep", to_attrs(attrs), in);
  return {out[0], out[1], out[2]};
}

}  // namespace aloft

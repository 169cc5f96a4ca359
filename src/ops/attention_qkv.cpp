#include "ops/attention_qkv.h"

#include <cmath>

#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/constant.h"
#include "ops/embedding.h"
#include "ops/kept_type.h"
#include "ops/op.h"
#include "ops/reshape.h"
#include "ops/transpose.h"

namespace aloft {
namespace {

using A = AttentionQkvAttrs;

Dim width_of(const A& a, const Shape& qkv) { return qkv[2].max() / a.all_heads(); }

Shape output_shape(const A& a, const Shape& qkv) {
  return {qkv[0], qkv[1], a.heads * width_of(a, qkv).max()};
}
Shape lse_shape(const A& a, const Shape& qkv) { return {qkv[0], a.heads, qkv[1]}; }

void check_operands(const A& a, Infer& c) {
  c.need_rank(0, 3, 3);
  c.need_float(0);
  c.check(a.heads > 0 && a.kv_heads >= 0 && a.heads % a.kv() == 0, "the heads do not divide",
          "heads that are a multiple of kv_heads");
  c.check(std::isfinite(a.scale), "scale is " + std::to_string(a.scale), "a finite number");
  const Shape& s = c.shape(0);
  c.check(s[1].is_constant() && s[2].is_constant(), "a dimension other than the batch is symbolic",
          "constant length and width");
  const std::int64_t width = s[2].max();
  c.check(a.heads <= width && a.kv() <= (width - a.heads) / 2,
          "the last dimension is " + s[2].str() + ", which is less than its heads",
          "a multiple of heads + 2 kv_heads");
  c.check(width % a.all_heads() == 0,
          "the last dimension is " + s[2].str() + ", which holds no whole number of heads",
          "(heads + 2 kv_heads) times the width of a head: a multiple of " +
              std::to_string(a.all_heads()));
}

void infer(const A& a, Infer& c) {
  c.need_count(1);
  check_operands(a, c);
  c.out(c.dtype(0), output_shape(a, c.shape(0)));
  c.out(statistics_type(c.dtype(0)), lse_shape(a, c.shape(0)));
}

Tensor numbers(const Tensor& like, std::int64_t from, std::int64_t count) {
  EmitterScope scope(*like.emitter());
  return iota(count, DType::I32, from);
}

// Heads [from, from + count) of x [B, T, all, D].
Tensor take_heads(const Tensor& x, std::int64_t from, std::int64_t count) {
  const Shape s = x.shape();
  const Tensor rows = flatten(transpose(x, {2, 0, 1, 3}), 1, 3);
  const Tensor taken = embedding(rows, numbers(x, from, count));
  return transpose(reshape(taken, {count, s[0], s[1], s[3]}), {1, 2, 0, 3});
}
// The transpose of it: x [B, T, count, D] as heads [from, from + count) of `all`, the others 0.
Tensor put_heads(const Tensor& x, std::int64_t from, std::int64_t all) {
  const Shape s = x.shape();
  const Tensor rows = flatten(transpose(x, {2, 0, 1, 3}), 1, 3);
  const Tensor put = embedding_grad(rows, numbers(x, from, s[2].max()), all);
  return transpose(reshape(put, {all, s[0], s[1], s[3]}), {1, 2, 0, 3});
}

// q, k, v as [B, T, heads, D].
std::vector<Tensor> split(const A& a, const Tensor& qkv) {
  const Shape s = qkv.shape();
  const Tensor x = reshape(qkv, {s[0], s[1], a.all_heads(), width_of(a, s)});
  return {take_heads(x, 0, a.heads), take_heads(x, a.heads, a.kv()),
          take_heads(x, a.heads + a.kv(), a.kv())};
}

Attrs inner(const A& a) { return to_attrs(AttentionAttrs{a.causal, a.scale}); }

std::vector<Tensor> body(const A& a, std::span<const Tensor> in) {
  const auto qkv = split(a, in[0]);
  const Operand operands[] = {qkv[0], qkv[1], qkv[2]};
  const auto out = emit_op("attention", inner(a), operands);
  return {reshape(out[0], output_shape(a, in[0].shape())), out[1]};
}

void vjp(const A& a, Vjp& g) {
  if (!g.needs(0)) return;
  std::vector<Operand> in = {g.in(0), g.out(0), g.out(1)};
  in.emplace_back(g.has_cotangent(0) ? g.cotangent(0)
                                     : broadcast_like(scalar_like(g.out(0), 0), g.out(0)));
  if (g.has_cotangent(1)) in.emplace_back(g.cotangent(1));
  g.give(0, emit_op("attention_qkv_grad", to_attrs(a), in)[0]);
}

Cost cost(double products, const A& a, CallTypes in, CallTypes out) {
  Cost c = elementwise_cost(0, in, out);
  const Shape& s = in[0].shape;
  const double length = static_cast<double>(s[1].max());
  const double pairs = a.causal ? length * (length + 1) / 2 : length * length;
  c.flops = 2 * products * pairs * static_cast<double>(s[0].max() * a.heads) *
            static_cast<double>(width_of(a, s).max());
  return c;
}

// Weights may be rounded to the operands' type before they multiply the values.
constexpr double kInnerRoundings = 1;

struct SampleShape {
  A attrs;
  std::int64_t batch, length, width;
};

const SampleShape kSamples[] = {
    {{2, 0, true}, 2, 5, 4},    {{2, 1, false}, 1, 7, 8},  {{4, 2, true, 0.5}, 1, 6, 3},
    {{1, 0, true}, 1, 1, 1},    {{2, 0, true}, 0, 4, 4},   {{2, 0, true}, 2, 0, 4},
    {{3, 0, true}, 1, 133, 16}, {{2, 1, true}, 1, 65, 64}, {{1, 0, true}, 1, 17, 4097}};

std::vector<Product> products_of(const A& a, CallTypes in, bool backward) {
  const Shape& x = in[0].shape;
  return attention_products(x[0].max() * a.heads, x[1].max(), x[1].max(),
                            x[2].max() / a.all_heads(), a.causal, backward);
}

OpDef attention_qkv_op() {
  return define<A>({
      .name = "attention_qkv",
      .doc = "attention of a packed [B, T, (H + 2 KV) D] (queries, keys, values; head-major each): "
             "o [B, T, H D] and each row's log-sum-exp. "
             "Never whole: scores, softmax, probabilities.",
      .infer = infer,
      .numeric = Numeric::Narrow,
      .meaning = Body<A>(body),
      .vjp = VjpOf<A>(vjp),
      .cost = [](const A& a, CallTypes in, CallTypes out) { return cost(2, a, in, out); },
      .labels = "b * * -> b * *, b * *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            for (const SampleShape& x : kSamples)
              s.add(x.attrs, {{{x.batch, x.length, x.attrs.all_heads() * x.width}}})
                  .inner_roundings = kInnerRoundings;
            s.add_special(A{2, 1, false}, {{{1, 37, 4 * 8}}}, {0}, kInnerRoundings);
          },
      .products = [](const A& a, CallTypes in, CallTypes) { return products_of(a, in, false); },
  });
}

void infer_grad(const A& a, Infer& c) {
  c.need_count(4, 5);
  check_operands(a, c);
  for (int i : {1, 3}) {
    c.need_same_dtype(0, i);
    c.need_shape(i, output_shape(a, c.shape(0)));
  }
  for (int i = 2; i < c.count(); i += 2) {
    c.need_float(i);
    c.need_shape(i, lse_shape(a, c.shape(0)));
  }
  c.out(c.in(0));
}

std::vector<Tensor> grad_body(const A& a, std::span<const Tensor> in) {
  const auto qkv = split(a, in[0]);
  const Shape heads = qkv[0].shape();
  std::vector<Operand> operands = {
      qkv[0], qkv[1], qkv[2], reshape(in[1], heads), in[2], reshape(in[3], heads)};
  if (in.size() > 4) operands.emplace_back(in[4]);
  const auto d = emit_op("attention_grad", inner(a), operands);
  const Tensor packed = put_heads(d[0], 0, a.all_heads()) +
                        put_heads(d[1], a.heads, a.all_heads()) +
                        put_heads(d[2], a.heads + a.kv(), a.all_heads());
  return {reshape(packed, in[0].shape())};
}

OpDef attention_qkv_grad_op() {
  return define<A>({
      .name = "attention_qkv_grad",
      .doc = "Gradient of attention_qkv from qkv, o, lse, the cotangent of o and, if there is one, "
             "that of lse: dqkv, packed alike.",
      .infer = infer_grad,
      .numeric = Numeric::Narrow,
      .meaning = Body<A>(grad_body),
      .vjp = FromBody{},
      .cost = [](const A& a, CallTypes in, CallTypes out) { return cost(5, a, in, out); },
      .labels = "b * *, b * *, b * *, b * *, b * * -> b * *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            for (const SampleShape& x : kSamples) {
              const Shape qkv{x.batch, x.length, x.attrs.all_heads() * x.width};
              const Shape o = output_shape(x.attrs, qkv), lse = lse_shape(x.attrs, qkv);
              std::vector<SampleInput> in = {
                  {qkv}, {o}, {lse, Fill::Uniform, 4, 6, 1, DType::F32, true}, {o}};
              if (x.length == 7) in.push_back({lse, Fill::Normal, 0, 0, 1, DType::F32, true});
              s.add(x.attrs, in).inner_roundings = kInnerRoundings;
            }
            const A small{2, 1, true, 0.5};
            const Shape qkv{1, 3, small.all_heads() * 2}, lse = lse_shape(small, qkv);
            const SampleInput o{output_shape(small, qkv)};
            s.add(small, all_in_f64({{qkv}, o, {lse, Fill::Uniform, 4, 6}, o, {lse}}), "all in f64")
                .inner_roundings = kInnerRoundings;
            const A open{2, 1, false};
            const Shape x{1, 37, open.all_heads() * 8}, y = output_shape(open, x);
            s.add_special(
                open,
                {{x}, {y}, {lse_shape(open, x), Fill::Uniform, 4, 6, 1, DType::F32, true}, {y}},
                {1, 3}, kInnerRoundings);
          },
      .products = [](const A& a, CallTypes in, CallTypes) { return products_of(a, in, true); },
      .keep_inputs = {2, 4},
  });
}

}  // namespace

std::vector<OpDef> attention_qkv_ops() { return {attention_qkv_op(), attention_qkv_grad_op()}; }

Tensor attention_qkv(Operand qkv, const AttentionQkvAttrs& attrs) {
  return emit_one("attention_qkv", to_attrs(attrs), {qkv});
}

}  // namespace aloft

#include "ops/attention.h"

#include <cmath>
#include <limits>

#include "ops/attention_inside.h"
#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/kept_type.h"
#include "ops/logical.h"
#include "ops/matmul.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/transpose.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace aloft {
namespace {

using A = AttentionAttrs;

double scale_of(double scale, const Shape& q) {
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q[3].max()));
}

// What attention and its cached form have in common.
template <class Attributes>
void check_heads(const Attributes& a, Infer& c) {
  c.check(std::isfinite(a.scale), "scale is " + std::to_string(a.scale), "a finite number");
  c.check(a.window >= 0, "window is " + std::to_string(a.window), "0 or more");
  c.check(a.cap == 0 || (a.cap >= 1e-30 && a.cap <= 1e30), "cap is " + std::to_string(a.cap),
          "1e-30 to 1e30, or 0");
  c.need_float(0);
  for (int i : {0, 1, 2}) {
    c.need_rank(i, 4, 4);
    c.need_same_dtype(0, i);
    for (int axis : {1, 2, 3})
      c.check(c.shape(i)[axis].is_constant(), "a dimension other than the batch is symbolic",
              "constant lengths, heads and widths");
  }
  const Shape &q = c.shape(0), &k = c.shape(1);
  c.need_same_shape(1, 2);
  c.check(q[0] == k[0] && q[3] == k[3], "queries and keys do not fit together",
          "equal batches and equal widths of a head");
  const std::int64_t heads = q[2].max(), kv = k[2].max();
  c.check(kv > 0 && heads > 0 && heads % kv == 0 && q[3].max() > 0, "the heads do not divide",
          "a number of query heads that is a multiple of the key heads");
}

void check_operands(const A& a, Infer& c) {
  check_heads(a, c);
  c.check(a.window == 0 || a.causal, "a window without a causal mask", "causal = true");
  const std::int64_t queries = c.shape(0)[1].max(), keys = c.shape(1)[1].max();
  c.check(queries == 0 || keys > 0, "there is no key", "at least one key");
  c.check(!a.causal || queries <= keys, "more queries than keys",
          "at least as many keys as queries under a causal mask", "causal = false");
}

Shape lse_shape(const Shape& q) { return {q[0], q[2], q[1]}; }

void infer(const A& a, Infer& c) {
  c.need_count(3);
  check_operands(a, c);
  c.out(c.in(0));
  c.out(statistics_type(c.dtype(0)), lse_shape(c.shape(0)));
}

// Heads in front, query heads grouped by the key head that they share:
// [B, T, H, D] -> [B, KV, G, T, D]; keys and values get G = 1, which broadcasts.
Tensor heads_first(const Tensor& x, std::int64_t kv, DType wide) {
  const Shape s = x.shape();
  const Tensor t = transpose(cast(x, wide), {0, 2, 1, 3});
  return reshape(t, {s[0], kv, s[2].max() / kv, s[1], s[3]});
}
Tensor heads_last(const Tensor& t, const Shape& shape, DType dtype) {
  return cast(transpose(reshape(t, {shape[0], shape[2], shape[1], shape[3]}), {0, 2, 1, 3}), dtype);
}

// Scores as the softmax takes them, and what is left of a score's cotangent behind the cap; that
// is undefined where nothing is capped.
struct Scores {
  Tensor s, slope;
};
Scores scores_of(const Tensor& q, const Tensor& k, double scale, double cap, const Tensor& mask) {
  Scores out{matmul(q, k, false, true) * scale, {}};
  if (cap > 0) {
    const Tensor bent = tanh(out.s / cap);
    out.slope = 1.0 - square(bent);
    out.s = bent * cap;
  }
  if (mask.is_defined())
    out.s = where(mask, out.s, scalar_like(out.s, -std::numeric_limits<double>::infinity()));
  return out;
}

// [T, S]: which keys a query sees; undefined where it sees all. `first` is how many keys the
// first query sees before itself, `window` how many any sees; 0: all.
Tensor mask_of(const Tensor& like, std::int64_t queries, std::int64_t keys, const Tensor& first,
               std::int64_t window) {
  EmitterScope scope(*like.emitter());
  const Tensor row = reshape(iota(queries, DType::I32), {queries, 1}) + first;
  const Tensor key = iota(keys, DType::I32);
  const Tensor seen = less_equal(key, row);
  if (window == 0 || window >= keys) return seen;
  return logical_and(seen, greater(key, row - full({}, static_cast<double>(window), DType::I32)));
}

Tensor causal_mask(const A& a, const Tensor& q, const Tensor& k) {
  if (!a.causal) return {};
  const std::int64_t queries = q.dim(1).max(), keys = k.dim(1).max();
  EmitterScope scope(*q.emitter());
  return mask_of(q, queries, keys, full({}, static_cast<double>(keys - queries), DType::I32),
                 a.window);
}

std::vector<Tensor> body(const A& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[0].dtype());
  const Shape shape = in[0].shape();
  const std::int64_t kv = in[1].dim(2).max();
  const Tensor q = heads_first(in[0], kv, wide), k = heads_first(in[1], kv, wide),
               v = heads_first(in[2], kv, wide);
  const Tensor s = scores_of(q, k, scale_of(a.scale, shape), a.cap, causal_mask(a, in[0], in[1])).s;
  const Tensor top = max(s, {-1}, true);
  const Tensor lse = log(sum(exp(s - top), {-1}, true)) + top;
  return {heads_last(matmul(exp(s - lse), v), shape, in[0].dtype()),
          reshape(lse, lse_shape(shape))};
}

void vjp(const A& a, Vjp& g) {
  std::vector<Operand> in = {g.in(0), g.in(1), g.in(2), g.out(0), g.out(1)};
  in.emplace_back(g.has_cotangent(0) ? g.cotangent(0)
                                     : broadcast_like(scalar_like(g.out(0), 0), g.out(0)));
  if (g.has_cotangent(1)) in.emplace_back(g.cotangent(1));
  const auto d = emit_op("attention_grad", to_attrs(a), in);
  for (int i = 0; i < 3; ++i)
    if (g.needs(i)) g.give(i, d[i]);
}

Cost cost(double products, CallTypes in, CallTypes out, bool causal) {
  Cost c = elementwise_cost(0, in, out);
  const double keys = static_cast<double>(in[1].shape[1].max());
  c.flops = 2 * products * keys * static_cast<double>(in[0].shape.max_numel());
  if (causal) {  // the half that no mask hides
    const double queries = static_cast<double>(in[0].shape[1].max());
    c.flops *= keys > 0 ? 1 - (queries - 1) / (2 * keys) : 1;
  }
  return c;
}

struct SampleShape {
  A attrs;
  std::int64_t batch, queries, keys, heads, kv, width;
};

const SampleShape kSamples[] = {
    {{true, 0}, 2, 5, 5, 2, 2, 4},         {{false, 0}, 1, 3, 7, 2, 1, 8},
    {{true, 0.5}, 1, 3, 7, 4, 2, 3},       {{true, 0}, 1, 1, 1, 1, 1, 1},
    {{false, 2}, 3, 1, 17, 1, 1, 5},       {{true, 0}, 0, 4, 4, 2, 2, 4},
    {{true, 0}, 2, 0, 0, 2, 2, 4},         {{true, 0}, 1, 70, 133, 2, 1, 16},
    {{true, 0}, 1, 129, 129, 1, 1, 64},    {{false, 0}, 1, 3, 4097, 1, 1, 4},
    {{false, 0}, 1, 4097, 3, 1, 1, 4},     {{false, 0}, 1, 2, 3, 1, 1, 4097},
    {{true, 0, 3}, 2, 5, 7, 2, 1, 4},      {{true, 0, 1}, 1, 6, 6, 1, 1, 4},
    {{true, 0, 70}, 1, 97, 150, 2, 1, 16}, {{true, 0, 0, 1.5}, 1, 5, 7, 2, 2, 4},
    {{false, 2, 0, 3}, 1, 3, 9, 2, 1, 5},  {{true, 0, 40, 2}, 1, 129, 129, 1, 1, 16},
};

const SampleShape kSpecial[] = {{{}, 2, 5, 7, 2, 1, 4}, {{}, 1, 70, 133, 1, 1, 16}};

std::vector<SampleInput> qkv_of(const SampleShape& s) {
  const Shape q{s.batch, s.queries, s.heads, s.width}, k{s.batch, s.keys, s.kv, s.width};
  return {{q}, {k}, {k}};
}

// Weights may be rounded to the operands' type before they multiply the values.
constexpr double kInnerRoundings = 1;

void samples(Samples& s) {
  for (const SampleShape& shape : kSamples)
    s.add(shape.attrs, qkv_of(shape)).inner_roundings = kInnerRoundings;
  Sample& far = s.add(A{false, 40}, qkv_of({{}, 1, 3, 9, 1, 1, 4}), "scores far apart");
  far.gradient = false;
  far.inner_roundings = kInnerRoundings;
  Sample& longer = s.add(A{}, qkv_of({{}, 1, 530, 540, 1, 1, 3}), "kernels cut long queries");
  longer.gradient = false;
  longer.inner_roundings = kInnerRoundings;
  // Values that a mask hides reach no result of a kernel, and by 0 * inf those of the meaning.
  s.add_special(A{true}, qkv_of({{}, 2, 5, 7, 2, 1, 4}), {0, 1}, kInnerRoundings);
  for (const SampleShape& shape : kSpecial)
    s.add_special(A{false}, qkv_of(shape), {0, 1, 2}, kInnerRoundings);
}

std::vector<Product> products_of(const AttentionAttrs& a, CallTypes in, bool backward) {
  const Shape &q = in[0].shape, &k = in[1].shape;
  return attention_products(q[0].max() * q[2].max(), q[1].max(), k[1].max(), q[3].max(), a.causal,
                            backward);
}

OpDef attention_op() {
  return define<A>({
      .name = "attention",
      .doc = "softmax(scale q k^T) v over heads that may share keys and values, causal or not; "
             "also gives each row's log-sum-exp. Takes memory linear in the lengths. Never whole: "
             "scores, softmax, probabilities.",
      .infer = infer,
      .numeric = Numeric::Narrow,
      .meaning = Body<A>(body),
      .vjp = VjpOf<A>(vjp),
      .cost = [](const A& a, CallTypes in, CallTypes out) { return cost(2, in, out, a.causal); },
      .labels = "b * h *, b * h *, b * h * -> b * h *, b h *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
      .products = [](const auto& a, CallTypes in, CallTypes) { return products_of(a, in, false); },
  });
}

void infer_grad(const A& a, Infer& c) {
  c.need_count(6, 7);
  check_operands(a, c);
  for (int i : {3, 5}) {
    c.need_same_dtype(0, i);
    c.need_same_shape(0, i);
  }
  for (int i = 4; i < c.count(); i += 2) {
    c.need_float(i);
    c.need_shape(i, lse_shape(c.shape(0)));
  }
  for (int i : {0, 1, 2}) c.out(c.in(i));
}

// With P = exp(S - lse): dV = P^T dO, dS = P (dO V^T - rowsum(dO O) + dlse), dQ = scale dS K,
// dK = scale dS^T Q; keys and values sum over the queries' heads that share them. Capped scores
// hand on 1 - tanh^2 of dS.
std::vector<Tensor> grad_body(const A& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[0].dtype());
  const Shape shape = in[0].shape(), kv_shape = in[1].shape();
  const std::int64_t kv = kv_shape[2].max();
  const double scale = scale_of(a.scale, shape);
  const Tensor q = heads_first(in[0], kv, wide), k = heads_first(in[1], kv, wide),
               v = heads_first(in[2], kv, wide), o = heads_first(in[3], kv, wide),
               d = heads_first(in[5], kv, wide);
  const Shape rows{shape[0], kv, shape[2].max() / kv, shape[1], 1};
  const Scores scores = scores_of(q, k, scale, a.cap, causal_mask(a, in[0], in[1]));
  const Tensor p = exp(scores.s - reshape(cast(in[4], wide), rows));
  Tensor delta = sum(d * o, {-1}, true);
  if (in.size() > 6) delta = delta - reshape(cast(in[6], wide), rows);
  Tensor ds = p * (matmul(d, v, false, true) - delta) * scale;
  if (scores.slope.is_defined()) ds = ds * scores.slope;
  const Tensor dk = sum(matmul(ds, q, true, false), {2}, true);
  const Tensor dv = sum(matmul(p, d, true, false), {2}, true);
  const DType dtype = in[0].dtype();
  return {heads_last(matmul(ds, k), shape, dtype), heads_last(dk, kv_shape, dtype),
          heads_last(dv, kv_shape, dtype)};
}

OpDef attention_grad_op() {
  return define<A>({
      .name = "attention_grad",
      .doc = "Gradient of attention from q, k, v, o, lse, the cotangent of o and, if there is one, "
             "that of lse: dq, dk, dv. Recomputes the weights from lse.",
      .infer = infer_grad,
      .numeric = Numeric::Narrow,
      .meaning = Body<A>(grad_body),
      .vjp = FromBody{},
      .cost = [](const A& a, CallTypes in, CallTypes out) { return cost(5, in, out, a.causal); },
      .labels = "b * h *, b * h *, b * h *, b * h *, b h *, b * h *, b h * -> "
                "b * h *, b * h *, b * h *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      // o and lse are operands like any other here: small scores keep exp(s - lse) tame.
      .samples =
          [](Samples& s) {
            for (const SampleShape& shape : kSamples) {
              auto in = qkv_of(shape);
              const Shape q = in[0].shape;
              in.push_back({q});
              in.push_back({lse_shape(q), Fill::Uniform, 4, 6, 1, DType::F32, true});
              in.push_back({q});
              if (shape.queries == 3)
                in.push_back({lse_shape(q), Fill::Normal, 0, 0, 1, DType::F32, true});
              s.add(shape.attrs, in).inner_roundings = kInnerRoundings;
            }
            const SampleShape small{{true, 0.5}, 1, 3, 4, 2, 1, 2};
            auto in = qkv_of(small);
            const SampleInput o = in[0], lse{lse_shape(o.shape), Fill::Uniform, 4, 6};
            in.insert(in.end(), {o, lse, o, {lse_shape(o.shape)}});
            s.add(small.attrs, all_in_f64(in), "all in f64").inner_roundings = kInnerRoundings;
            // Those of q and k go with those of lse: attention's own results have them together.
            for (const SampleShape& shape : kSpecial) {
              auto in = qkv_of(shape);
              const Shape q = in[0].shape;
              in.insert(in.end(),
                        {{q}, {lse_shape(q), Fill::Uniform, 4, 6, 1, DType::F32, true}, {q}});
              s.add_special(A{false}, in, {2, 3, 5}, kInnerRoundings);
            }
          },
      .products = [](const auto& a, CallTypes in, CallTypes) { return products_of(a, in, true); },
      .keep_inputs = {4, 6},
  });
}

void infer_cached(const AttentionCachedAttrs& a, Infer& c) {
  c.need_count(4, 5);
  check_heads(a, c);
  const TensorType length{DType::I32, Shape{}};
  c.check(c.in(3) == length, "the length has the wrong type", length.str());
  const TensorType starts{DType::I32, Shape{c.shape(0)[0]}};
  c.check(c.count() < 5 || c.in(4) == starts, "the starts have the wrong type", starts.str());
  c.check(c.shape(0)[1].max() <= c.shape(1)[1].max(), "more queries than the cache has entries",
          "at most as many queries as entries");
  c.out(c.in(0));
}

// [B, 1, 1, 1, S]: which keys are those of a sequence.
Tensor behind_starts(const Tensor& starts, std::int64_t keys) {
  EmitterScope scope(*starts.emitter());
  return greater_equal(iota(keys, DType::I32), reshape(starts, {starts.dim(0), 1, 1, 1, 1}));
}

std::vector<Tensor> cached_body(const AttentionCachedAttrs& a, std::span<const Tensor> in) {
  const DType wide = statistics_type(in[0].dtype());
  const Shape shape = in[0].shape();
  const std::int64_t kv = in[1].dim(2).max();
  const Tensor q = heads_first(in[0], kv, wide), k = heads_first(in[1], kv, wide),
               v = heads_first(in[2], kv, wide);
  const std::int64_t keys = in[1].dim(1).max();
  Tensor mask = mask_of(in[0], shape[1].max(), keys, in[3], a.window);
  if (in.size() > 4) mask = logical_and(mask, behind_starts(in[4], keys));
  const Tensor s = scores_of(q, k, scale_of(a.scale, shape), a.cap, mask).s;
  const Tensor top = max(s, {-1}, true);
  if (in.size() < 5) {
    const Tensor e = exp(s - top);
    return {heads_last(matmul(e / sum(e, {-1}, true), v), shape, in[0].dtype())};
  }
  // Rows that see nothing have no largest score, and no sum.
  const Tensor sees = any(mask, {-1}, true);
  const Tensor e = exp(s - where(sees, top, scalar_like(top, 0)));
  const Tensor total = sum(e, {-1}, true);
  const Tensor p = e / where(sees, total, scalar_like(total, 1));
  return {heads_last(matmul(p, v), shape, in[0].dtype())};
}

OpDef attention_cached_op() {
  using C = AttentionCachedAttrs;
  return define<C>({
      .name = "attention_cached",
      .doc =
          "Attention of new queries over a cache of keys and values: query i sees the first "
          "length + i + 1 entries, from its sequence's start on where there are starts; the others "
          "are never read by a kernel and must be finite.",
      .infer = infer_cached,
      .numeric = Numeric::Narrow,
      .meaning = Body<C>(cached_body),
      .vjp = FromBody{},
      .cost = [](const C&, CallTypes in, CallTypes out) { return cost(2, in, out, false); },
      .labels = "b * h *, b * h *, b * h *, , b -> b * h *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            const auto one = [&](SampleShape shape, int length) {
              auto in = qkv_of(shape);
              in.push_back(ids({}, length, length + 1));
              s.add(C{shape.attrs.scale, shape.attrs.window, shape.attrs.cap}, in).inner_roundings =
                  kInnerRoundings;
            };
            one({{}, 2, 1, 9, 2, 2, 4}, 0);
            one({{}, 2, 1, 9, 2, 1, 4}, 8);
            one({{true, 0.5}, 1, 4, 17, 4, 2, 3}, 5);
            one({{}, 1, 3, 3, 1, 1, 16}, 0);
            one({{}, 1, 1, 300, 2, 2, 64}, 257);
            one({{}, 1, 3, 4097, 1, 1, 4}, 4090);
            one({{}, 1, 2, 3, 1, 1, 4097}, 1);
            one({{}, 0, 1, 9, 2, 2, 4}, 3);
            one({{true, 0, 4}, 2, 1, 9, 2, 1, 4}, 7);
            one({{true, 0, 4}, 2, 3, 9, 2, 1, 4}, 1);
            one({{true, 0, 30}, 1, 12, 90, 2, 1, 16}, 61);
            one({{true, 0, 0, 1.5}, 2, 1, 9, 2, 2, 4}, 5);
            one({{true, 0, 5, 2}, 1, 11, 40, 2, 1, 16}, 20);
            const auto padded = [&](const SampleShape& shape, int length, double last) {
              auto in = qkv_of(shape);
              in.push_back(ids({}, length, length + 1));
              in.push_back(ids({shape.batch}, 0, last));
              s.add(C{0, shape.attrs.window, shape.attrs.cap}, in, "padding").inner_roundings =
                  kInnerRoundings;
            };
            padded({{}, 3, 1, 9, 2, 1, 4}, 6, 6);
            padded({{}, 3, 4, 9, 2, 2, 4}, 3, 7);  // some queries are padding
            padded({{}, 2, 3, 9, 1, 1, 4}, 2, 9);  // perhaps all are
            padded({{true, 0, 4, 2}, 2, 12, 90, 2, 1, 16}, 61, 70);
            auto all_seen = qkv_of({{}, 2, 1, 9, 2, 1, 4});
            all_seen.push_back(ids({}, 8, 9));
            s.add_special(C{}, all_seen, {0, 1, 2}, kInnerRoundings);
          },
      .keep_inputs = {3, 4},
  });
}

}  // namespace

std::vector<OpDef> attention_ops() {
  return {attention_op(), attention_grad_op(), attention_cached_op()};
}

Tensor seen_keys(const AttentionAttrs& attrs, const Tensor& q, const Tensor& k) {
  return causal_mask(attrs, q, k);
}

Tensor attention(Operand q, Operand k, Operand v, const AttentionAttrs& attrs) {
  return emit_one("attention", to_attrs(attrs), {q, k, v});
}
Tensor attention_cached(Operand q, Operand k, Operand v, Operand length,
                        const AttentionCachedAttrs& attrs) {
  return emit_one("attention_cached", to_attrs(attrs), {q, k, v, length});
}
Tensor attention_cached(Operand q, Operand k, Operand v, Operand length, Operand starts,
                        const AttentionCachedAttrs& attrs) {
  return emit_one("attention_cached", to_attrs(attrs), {q, k, v, length, starts});
}

std::vector<Product> attention_products(std::int64_t heads, std::int64_t queries, std::int64_t keys,
                                        std::int64_t width, bool causal, bool backward) {
  const std::int64_t seen = causal ? (keys + 1) / 2 : keys;
  const Product scores{heads, queries, seen, width, false, true};
  const Product mix{heads, queries, width, seen, false, false};
  if (!backward) return {scores, mix};
  const Product from_rows{heads, seen, width, queries, true, false};  // dV and dK
  return {scores, scores, from_rows, mix, from_rows};
}

}  // namespace aloft

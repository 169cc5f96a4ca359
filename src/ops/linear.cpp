#include "ops/linear.h"

#include "ops/binary.h"
#include "ops/matmul.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/reshape.h"

namespace aloft {
namespace {

using A = NoAttrs;

void infer(const A&, Infer& c) {
  c.need_count(2, 3);
  c.need_rank(0, 2);
  c.need_rank(1, 2, 2);
  c.need_float(0);
  c.need_same_dtype(0, 1);
  const Dim k = c.shape(0)[-1], n = c.shape(1)[0];
  if (!(k == c.shape(1)[1]))
    c.fail("x has " + k.str() + " features, the weight takes " + c.shape(1)[1].str(),
           "x [..., K] and a weight [N, K]",
           k == n ? "the weight looks transposed: swap its axes" : "");
  if (c.count() == 3) {
    c.need_same_dtype(0, 2);
    c.need_shape(2, Shape{n});
  }
  Shape out = c.shape(0);
  out[-1] = n;
  c.out(c.dtype(0), out);
}

std::vector<Tensor> body(const A&, std::span<const Tensor> in) {
  const Tensor y = matmul(in[0], in[1], false, true);
  return {in.size() == 3 ? y + in[2] : y};
}

// [..., K] -> [rows, K]: a product with one shared matrix then sums over all rows at once.
Tensor rows_of(const Tensor& t) { return t.rank() == 2 ? t : flatten(t, 0, t.rank() - 2); }

void vjp(const A&, Vjp& g) {
  const Tensor& dy = g.cotangent(0);
  if (g.needs(0)) g.give(0, matmul(dy, g.in(1)));
  if (g.needs(1)) g.give(1, matmul(rows_of(dy), rows_of(g.in(0)), true, false));
  if (g.count() == 3 && g.needs(2)) g.give(2, sum(rows_of(dy), {0}));
}

Cost cost(const A&, CallTypes in, CallTypes out) {
  Cost c = elementwise_cost(in.size() == 3 ? 1 : 0, in, out);
  c.flops += 2.0 * static_cast<double>(out[0].shape.max_numel()) *
             static_cast<double>(in[1].shape[1].max());
  return c;
}

void samples(Samples& s) {
  const auto one = [&](Shape x, Dim n, bool bias) {
    const Dim k = x[-1];
    std::vector<SampleInput> in = {{std::move(x)}, {Shape{n, k}}};
    if (bias) in.push_back({Shape{n}});
    s.add(A{}, std::move(in));
  };
  one({3, 17}, 5, true);
  one({2, 3, 4}, 7, true);
  one({2, 3, 4}, 7, false);
  one({1, 1}, 1, true);
  one({0, 4}, 3, true);
  one({2, 4097}, 3, true);
  one({4097, 3}, 2, true);
  one({2, 3}, 4097, true);
  one({33, 64}, 70, false);
  s.add_special(A{}, {{{5, 3, 40}}, {{33, 40}}, {{33}}}, {0, 1, 2});
}

}  // namespace

std::vector<OpDef> linear_ops() {
  return {define<A>({
      .name = "linear",
      .doc =
          "x weight^T + bias over the last axis; the weight is [out, in]. Sums in fp32 or wider.",
      .infer = infer,
      .numeric = Numeric::Narrow,
      .meaning = Body<A>(body),
      .vjp = VjpOf<A>(vjp),
      .cost = cost,
      .labels = "... k, n k, n -> ... n",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
      .products =
          [](const auto&, CallTypes in, CallTypes out) {
            const std::int64_t n = in[1].shape[0].max();
            const std::int64_t rows = n > 0 ? out[0].shape.max_numel() / n : 0;
            return std::vector{Product{1, rows, n, in[1].shape[1].max(), false, true}};
          },
      .product_forms = kFormsOfF32,
  })};
}

Tensor linear(Operand x, Operand weight, const Tensor& bias) {
  if (!bias.is_defined()) return emit_one("linear", {}, {x, weight});
  return emit_one("linear", {}, {x, weight, bias});
}

}  // namespace aloft

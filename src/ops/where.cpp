#include "ops/where.h"

#include "ops/binary.h"
#include "ops/op.h"
#include "ops/promote.h"

namespace aloft {

std::vector<OpDef> where_ops() {
  using A = NoAttrs;
  return {define<A>({
      .name = "where",
      .doc = "condition ? a : b, element by element; the branch not taken gets a zero gradient.",
      .infer =
          [](const A&, Infer& c) {
            c.need_count(3);
            c.check(c.dtype(0) == DType::Bool, "the condition is not bool", "a bool tensor",
                    "compare with 0 first");
            c.need_same_dtype(1, 2);
            c.out(c.dtype(1), c.broadcast(c.shape(0), c.broadcast(c.shape(1), c.shape(2))));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A&, EvalCall& c) {
        const auto& out = c.out[0].shape;
        const BroadcastIndex p(c.in[0].shape, out), a(c.in[1].shape, out), b(c.in[2].shape, out);
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i)
          c.out[0][i] = c.in[0][p(i)] != 0 ? c.in[1][a(i)] : c.in[2][b(i)];
      }),
      .vjp = VjpOf<A>([](const A&, Vjp& g) {
        const Tensor& dy = g.cotangent(0);
        const Tensor zero = scalar_like(dy, 0);
        if (g.needs(1)) g.give(1, sum_to(where(g.in(0), dy, zero), g.in(1)));
        if (g.needs(2)) g.give(2, sum_to(where(g.in(0), zero, dy), g.in(2)));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "..., ..., ... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{"Where", 16},
      .samples =
          [](Samples& s) {
            const auto mask = [](Shape shape) { return ids(std::move(shape), 0, 2, DType::Bool); };
            s.add(A{}, {mask({3, 17}), {{3, 17}}, {{3, 17}}});
            s.add(A{}, {mask({3, 1}), {{5}}, {{}}});
            s.add(A{}, {mask({0}), {{0}}, {{0}}});
            s.add(A{}, {mask({4097}), {{4097}}, {{1}}});
            s.add(A{}, {mask({64}), {{64}, Fill::Special}, {{64}}}, "special values").gradient =
                false;
          },
      .only_moves = true,
  })};
}

Tensor where(Operand condition, Operand a, Operand b) {
  meet(a, b);
  return emit_one("where", {}, {condition, a, b});
}

}  // namespace aloft

#include "ops/cumsum.h"

#include "ops/op.h"
#include "ops/promote.h"
#include "scalar/integers.h"

namespace aloft {

std::vector<OpDef> cumsum_ops() {
  using A = CumsumAttrs;
  return {define<A>({
      .name = "cumsum",
      .doc = "Sums of the elements up to each one along an axis.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.axis(0, a.axis);
            c.out(c.in(0));
          },
      .numeric = Numeric::Widen,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const HostArray& x = c.in[0];
        HostArray& y = c.out[0];
        const int axis = normal_axis(a.axis, x.rank());
        const std::int64_t n = x.shape[axis], inner = product(x.shape, axis + 1, x.rank());
        for (std::int64_t t = 0; t < x.numel(); ++t) {
          // Against the direction of the sum, so that the neighbour is there already.
          const std::int64_t i = a.reverse ? x.numel() - 1 - t : t;
          const std::int64_t k = i / inner % n;
          const bool first = k == (a.reverse ? n - 1 : 0);
          const HostNumber before = first ? HostNumber() : y[a.reverse ? i + inner : i - inner];
          if (is_integer(y.dtype))
            y[i] = wrapped(scalar::wrapping_add(x[i].whole(), before.whole()), y.dtype);
          else
            y[i] = x[i] + before;
        }
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0)) g.give(0, cumsum(g.cotangent(0), a.axis, !a.reverse));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"CumSum", 14},
      .samples =
          [](Samples& s) {
            s.add(A{-1, false}, {{{3, 17}}});
            s.add(A{0, true}, {{{3, 17}}});
            s.add(A{1, false}, {{{2, 5, 3}}});
            s.add(A{0, false}, {{{0, 2}}});
            s.add(A{0, false}, {{{4097}}});
            s.add(A{0, true}, {{{1}}});
            s.add(A{-1, false}, {ids({3, 5}, -9, 9)}).gradient = false;
            for (const DType t : {DType::I64, DType::I32, DType::I8, DType::U8})
              for (const std::int64_t axis : {0, 1})
                s.add(A{axis, false}, {whole_numbers({5, 67}, t)}, "integers").gradient = false;
          },
  })};
}

Tensor cumsum(Operand x, std::int64_t axis, bool reverse) {
  // Sums of integers are made in i64.
  return emit_one("cumsum", to_attrs(CumsumAttrs{axis, reverse}),
                  {as_type(x, as_sum(x.tensor.dtype()))});
}

}  // namespace aloft

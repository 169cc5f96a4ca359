#include "ops/transpose.h"

#include <utility>

#include "ops/op.h"

namespace aloft {
namespace {

Ints inverse(const Ints& perm) {
  Ints inv(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    inv[normal_axis(perm[i], static_cast<int>(perm.size()))] = static_cast<std::int64_t>(i);
  return inv;
}

}  // namespace

std::vector<OpDef> transpose_ops() {
  using A = TransposeAttrs;
  return {define<A>({
      .name = "transpose",
      .doc = "Reorders axes: axis i of the result is axis perm[i] of x.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.check(static_cast<int>(a.perm.size()) == c.shape(0).rank(),
                    "the permutation has the wrong length",
                    std::to_string(c.shape(0).rank()) + " axes");
            if (!a.perm.empty()) c.axes(0, a.perm);
            Shape out;
            for (std::int64_t p : a.perm) out.dims().push_back(c.shape(0)[c.axis(0, p)]);
            c.out(c.dtype(0), out);
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const HostArray& x = c.in[0];
        HostArray& y = c.out[0];
        for (std::int64_t i = 0; i < y.numel(); ++i) {
          std::int64_t rest = i, from = 0;
          for (int d = y.rank() - 1; d >= 0; --d) {
            const int axis = normal_axis(a.perm[d], x.rank());
            from += rest % y.shape[d] * product(x.shape, axis + 1, x.rank());
            rest /= y.shape[d];
          }
          y[i] = x[from];
        }
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0)) g.give(0, transpose(g.cotangent(0), inverse(a.perm)));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"Transpose", 13},
      .samples =
          [](Samples& s) {
            s.add(A{{1, 0}}, {{{3, 17}}});
            s.add(A{{0, 2, 1, 3}}, {{{2, 3, 4, 5}}});
            s.add(A{{2, 0, 1}}, {{{2, 3, 17}}});
            s.add(A{{-1, 0}}, {{{0, 3}}});
            s.add(A{{1, 0}}, {{{17, 1}}});
            s.add(A{{1, 0}}, {{{4097, 2}}});
            s.add(A{{}}, {{{}}});
          },
      .only_moves = true,
  })};
}

Tensor transpose(Operand x, const Ints& perm) {
  return emit_one("transpose", to_attrs(TransposeAttrs{perm}), {x});
}

Tensor swap_axes(Operand x, int a, int b) {
  const int rank = x.tensor.rank();
  Ints perm(rank);
  for (int i = 0; i < rank; ++i) perm[i] = i;
  const auto at = [&](int axis) -> std::int64_t& {
    x.tensor.dim(axis);  // refuses what is no axis
    return perm[normal_axis(axis, rank)];
  };
  std::swap(at(a), at(b));
  return transpose(x, perm);
}

}  // namespace aloft

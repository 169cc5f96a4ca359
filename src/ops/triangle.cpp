#include "ops/triangle.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/op.h"
#include "ops/reshape.h"
#include "ops/where.h"

namespace aloft {
namespace {

using A = TriangleAttrs;

OpDef triangle_op(const char* name, const char* doc, Tensor (*keeps)(Operand, Operand)) {
  return define<A>({
      .name = name,
      .doc = doc,
      .infer =
          [](const A&, Infer& c) {
            c.need_count(1);
            c.need_rank(0, 2);
            for (int axis : {-2, -1})
              c.check(c.shape(0)[axis].is_constant(), "a matrix axis is symbolic",
                      "constant last two dimensions");
            c.out(c.in(0));
          },
      .numeric = Numeric::Follow,
      .meaning = Body<A>([keeps](const A& a, std::span<const Tensor> x) -> std::vector<Tensor> {
        EmitterScope scope(*x[0].emitter());
        const std::int64_t rows = x[0].dim(-2).max(), columns = x[0].dim(-1).max();
        const std::int64_t diagonal = std::clamp(a.diagonal, -rows, columns);  // beyond: the same
        const Tensor row = reshape(iota(rows, DType::I32, diagonal), {rows, 1});
        const Tensor mask = keeps(iota(columns), row);
        return {where(mask, x[0], scalar_like(x[0], 0))};
      }),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "... * * -> ... * *",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"Trilu", 14},
      .samples =
          [](Samples& s) {
            s.add(A{0}, {{{5, 5}}});
            s.add(A{-1}, {{{2, 3, 17}}});
            s.add(A{2}, {{{17, 3}}});
            s.add(A{0}, {{{0, 3}}});
            s.add(A{9}, {{{1, 4097}}});
          },
  });
}

}  // namespace

std::vector<OpDef> triangle_ops() {
  return {triangle_op("tril", "The lower triangle of the last two axes; 0 above.", less_equal),
          triangle_op("triu", "The upper triangle of the last two axes; 0 below.", greater_equal)};
}

Tensor tril(Operand x, std::int64_t diagonal) {
  return emit_one("tril", to_attrs(TriangleAttrs{diagonal}), {x});
}
Tensor triu(Operand x, std::int64_t diagonal) {
  return emit_one("triu", to_attrs(TriangleAttrs{diagonal}), {x});
}

}  // namespace aloft

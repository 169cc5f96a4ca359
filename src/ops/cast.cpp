#include "ops/cast.h"

#include <algorithm>

#include "ops/op.h"

namespace aloft {

std::vector<OpDef> cast_ops() {
  using A = CastAttrs;
  return {define<A>({
      .name = "cast",
      .doc = "Converts to another element type, rounding to nearest even; float to integer "
             "truncates and saturates, NaN becomes 0.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.out(a.to, c.shape(0));
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([](const A&, EvalCall& c) { c.out[0].values = c.in[0].values; }),
      .vjp = VjpOf<A>([](const A&, Vjp& g) {
        if (g.needs(0) && is_float(g.in(0).dtype()))
          g.give(0, cast(g.cotangent(0), g.in(0).dtype()));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{"Cast", 13},
      .samples =
          [](Samples& s) {
            for (DType to : {DType::F32, DType::BF16, DType::F16, DType::F64})
              for (const Shape& shape : {Shape{3, 17}, Shape{0}, Shape{4097}})
                s.add(A{to}, {{shape}}).gradient = to == DType::F64;
            s.add(A{DType::I32}, {{{17}, Fill::Normal, 0, 0, 100}}).gradient = false;
            s.add(A{DType::F32}, {ids({17}, -50, 50)}).gradient = false;
            for (DType to : {DType::F32, DType::BF16, DType::F16})
              s.add(A{to}, {{{64}, Fill::Special}}, "special values").gradient = false;
          },
  })};
}

Tensor cast(Operand x, DType to) {
  if (x.tensor.dtype() == to) return x.tensor;
  return emit_one("cast", to_attrs(CastAttrs{to}), {x});
}

void meet(Operand& a, Operand& b) {
  const DType ta = a.tensor.dtype(), tb = b.tensor.dtype();
  if (ta == tb || !is_float(ta) || !is_float(tb)) return;
  // Two different 16-bit types meet in f32, which holds both exactly.
  const DType wide = is_low(ta) && is_low(tb) ? DType::F32 : std::min(ta, tb);
  Where where = current_where();
  if (!where.pass) where.pass = "meet";  // not what the user asked for
  Scope scope(where);
  a.tensor = cast(a, wide);
  b.tensor = cast(b, wide);
}

}  // namespace aloft

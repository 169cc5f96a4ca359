#include "ops/cast.h"

#include "ops/op.h"

namespace aloft {

std::vector<OpDef> cast_ops() {
  using A = CastAttrs;
  return {define<A>({
      .name = "cast",
      .doc = "Converts to another element type, rounding to nearest even; float to integer "
             "truncates and saturates, NaN becomes 0; integer to integer wraps around.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.out(a.to, c.shape(0));
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        c.out[0].values = c.in[0].values;
        if (is_integer(a.to) && is_integer(c.in[0].dtype))
          for (HostNumber& v : c.out[0].values) v = wrapped(v.whole(), a.to);
      }),
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
              for (const Shape& shape : {Shape{3, 17}, Shape{0}, Shape{1}, Shape{4097}})
                s.add(A{to}, {{shape}}).gradient = to == DType::F64;
            s.add(A{DType::I32}, {{{17}, Fill::Normal, 0, 0, 100}}).gradient = false;
            s.add(A{DType::F32}, {ids({17}, -50, 50)}).gradient = false;
            for (DType from : {DType::I64, DType::I32, DType::I8, DType::U8})
              for (DType to : kAllDTypes)
                s.add(A{to}, {whole_numbers({67}, from)}, "integers").gradient = false;
            for (DType to : {DType::F32, DType::BF16, DType::F16})
              s.add(A{to}, {{{64}, Fill::Special}}, "special values").gradient = false;
          },
      .only_moves = true,
  })};
}

Tensor cast(Operand x, DType to) {
  if (x.tensor.dtype() == to) return x.tensor;
  return emit_one("cast", to_attrs(CastAttrs{to}), {x});
}

}  // namespace aloft

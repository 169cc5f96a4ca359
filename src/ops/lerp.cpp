#include "ops/lerp.h"

#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/kept_type.h"
#include "ops/op.h"

namespace aloft {

std::vector<OpDef> lerp_ops() {
  using A = NoAttrs;
  return {define<A>({
      .name = "lerp",
      .doc = "a + weight * (b - a).",
      .infer =
          [](const A&, Infer& c) {
            c.need_count(3);
            c.need_float(0);
            c.need_same_dtype(0, 1);
            c.need_same_dtype(0, 2);
            c.out(c.dtype(0), c.broadcast(c.shape(2), c.broadcast(c.shape(0), c.shape(1))));
          },
      .numeric = Numeric::Follow,
      .meaning = Body<A>([](const A&, std::span<const Tensor> x) -> std::vector<Tensor> {
        // The difference of two f16 may leave their range, where what lies between does not.
        const AsWritten as_written;
        const DType low = x[0].dtype(), type = statistics_type(low);
        const Tensor a = cast(x[0], type), b = cast(x[1], type), weight = cast(x[2], type);
        return {cast(a + weight * (b - a), low)};
      }),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(3, in, out); },
      .labels = "..., ..., ... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{}, {{{3, 17}}, {{3, 17}}, {{}}});
            s.add(A{}, {{{3, 1}}, {{17}}, {{3, 17}}});
            s.add(A{}, {{{0}}, {{0}}, {{0}}});
            s.add(A{}, {{{4097}}, {{4097}}, {{1}}});
          },
  })};
}

Tensor lerp(Operand a, Operand b, Operand weight) { return emit_one("lerp", {}, {a, b, weight}); }

}  // namespace aloft

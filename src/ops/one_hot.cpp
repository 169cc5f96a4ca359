#include "ops/one_hot.h"

#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/op.h"
#include "ops/reshape.h"

namespace aloft {

std::vector<OpDef> one_hot_ops() {
  using A = OneHotAttrs;
  return {define<A>({
      .name = "one_hot",
      .doc = "1 at the place of each id along a new last axis, 0 elsewhere.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.need_integer(0);
            c.check(c.dtype(0) == DType::I32 || c.dtype(0) == DType::I64, "the ids are too narrow",
                    "i32 or i64", "cast them");
            c.check(a.classes >= 0, "a negative number of classes", "classes >= 0");
            Shape out = c.shape(0);
            out.dims().push_back(a.classes);
            c.out(a.dtype, out);
          },
      .numeric = Numeric::Exact,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> x) -> std::vector<Tensor> {
        Shape column = x[0].shape();
        column.dims().push_back(1);
        EmitterScope scope(*x[0].emitter());
        if (x[0].shape().max_numel() == 0) {  // of any number of classes
          column[-1] = a.classes;
          return {full(column, 0, a.dtype)};
        }
        const Tensor classes = iota(a.classes, x[0].dtype());
        return {cast(equal(reshape(x[0], column), classes), a.dtype)};
      }),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "... -> ... *",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"OneHot", 11},
      .samples =
          [](Samples& s) {
            s.add(A{5, DType::F32}, {ids({3, 4}, 0, 5)});
            s.add(A{17, DType::BF16}, {ids({9}, -2, 19, DType::I64)}, "ids outside");
            s.add(A{3, DType::I32}, {ids({0}, 0, 3)});
            s.add(A{4097, DType::F16}, {ids({2}, 0, 4097)});
            s.add(A{4, DType::F32}, {ids({}, 0, 4)});
            s.add(A{1, DType::F32}, {ids({1}, 0, 1)});
          },
  })};
}

Tensor one_hot(Operand ids, std::int64_t classes, DType dtype) {
  return emit_one("one_hot", to_attrs(OneHotAttrs{classes, dtype}), {ids});
}

}  // namespace aloft

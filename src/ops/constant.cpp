#include "ops/constant.h"

#include <algorithm>

#include "ops/op.h"
#include "scalar/integers.h"

namespace aloft {
namespace {

OpDef full_op() {
  using A = FullAttrs;
  return define<A>({
      .name = "full",
      .doc = "Every element is `value`.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(0);
            c.out(a.dtype, a.shape);
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        std::fill(c.out[0].values.begin(), c.out[0].values.end(), a.value);
      }),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "-> *",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{"ConstantOfShape", 9},
      .samples =
          [](Samples& s) {
            s.add(A{{3, 17}, 1.5, DType::F32}, {});
            s.add(A{{}, -2, DType::BF16}, {});
            s.add(A{{0}, 1, DType::F16}, {});
            s.add(A{{1}, 0.25, DType::F32}, {});
            s.add(A{{4097}, 7, DType::I32}, {});
          },
  });
}

OpDef iota_op() {
  using A = IotaAttrs;
  return define<A>({
      .name = "iota",
      .doc = "start, start + step, start + 2 step, ...",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(0);
            c.check(a.count >= 0, "a negative count", "count >= 0");
            c.out(a.dtype, Shape{a.count});
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        for (std::int64_t i = 0; i < a.count; ++i) {
          const std::int64_t v = scalar::wrapping_add(a.start, scalar::wrapping_mul(i, a.step));
          c.out[0][i] = is_integer(a.dtype) ? wrapped(v, a.dtype) : HostNumber::of(v);
        }
      }),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "-> *",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{"Range", 11},
      .samples =
          [](Samples& s) {
            s.add(A{17}, {});
            s.add(A{0}, {});
            s.add(A{1}, {});
            s.add(A{4097, 5, -3, DType::I64}, {});
            s.add(A{9, 1, 2, DType::F32}, {});
            s.add(A{9, (std::int64_t{1} << 53) + 1, 2, DType::I64}, {});
          },
  });
}

}  // namespace

std::vector<OpDef> constant_ops() { return {full_op(), iota_op()}; }

Tensor full(const Shape& shape, double value, DType dtype) {
  return emit_one("full", to_attrs(FullAttrs{shape, value, dtype}), {});
}
Tensor iota(std::int64_t count, DType dtype, std::int64_t start, std::int64_t step) {
  return emit_one("iota", to_attrs(IotaAttrs{count, start, step, dtype}), {});
}

}  // namespace aloft

#include "ops/clamp.h"

#include <cmath>
#include <limits>

#include "ops/binary.h"
#include "ops/compare.h"
#include "ops/op.h"
#include "ops/where.h"
#include "scalar/arithmetic.h"
#include "scalar/integers.h"

namespace aloft {
namespace {
bool is_whole_or_infinite(double v) { return std::isinf(v) || v == std::floor(v); }
}  // namespace

std::vector<OpDef> clamp_ops() {
  using A = ClampAttrs;
  return {define<A>({
      .name = "clamp",
      .doc = "x between low and high; on them and beyond the gradient is 0, NaN stays.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.check(a.low <= a.high, "the bounds are in the wrong order", "low <= high");
            c.check(is_float(c.dtype(0)) ||
                        (is_whole_or_infinite(a.low) && is_whole_or_infinite(a.high)),
                    "the bounds of integers are " + std::to_string(a.low) + " and " +
                        std::to_string(a.high),
                    "bounds that are integers", "cast x to f32");
            c.out(c.in(0));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i) {
          const HostNumber& x = c.in[0][i];
          if (is_integer(c.in[0].dtype))
            c.out[0][i] = HostNumber::of(scalar::whole_clamp(x.whole(), a.low, a.high));
          else
            c.out[0][i] = scalar::clamp<double>(x, a.low, a.high);
        }
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        const Tensor &x = g.in(0), &dy = g.cotangent(0);
        const Tensor zero = scalar_like(dy, 0);
        const Tensor above = where(greater(x, a.low), dy, zero);
        g.give(0, where(less(x, a.high), above, zero));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(2, in, out); },
      .labels = "... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{"Clip", 13},
      .samples =
          [](Samples& s) {
            for (const Shape& shape : {Shape{3, 17}, Shape{0}, Shape{1}, Shape{4097}})
              s.add(A{-0.5, 0.75}, {{shape, Fill::Uniform, -2, 2}});
            s.add(A{0, std::numeric_limits<double>::infinity()}, {{{17}, Fill::Uniform, -2, 2}},
                  "one bound");
            s.add(A{-3, 5}, {ids({17}, -9, 9)}).gradient = false;
            s.add(A{-1, 1}, {{{64}, Fill::Special}}, "special values").gradient = false;
            for (const DType t : {DType::I64, DType::I32, DType::I8, DType::U8})
              s.add(A{2, std::numeric_limits<double>::infinity()}, {whole_numbers({67}, t)},
                    "integers");
            s.add(A{200, 300}, {whole_numbers({67}, DType::I8)}, "above the type");
            s.add(A{-10, -1}, {whole_numbers({67}, DType::U8)}, "below the type");
          },
  })};
}

Tensor clamp(Operand x, double low, double high) {
  return emit_one("clamp", to_attrs(ClampAttrs{low, high}), {x});
}

}  // namespace aloft

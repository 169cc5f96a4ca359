#include "ops/rotary.h"

#include <cmath>

#include "ops/op.h"

namespace aloft {
namespace {

using A = RotaryAttrs;

void infer(const A& a, Infer& c) {
  c.need_count(2);
  c.need_float(0);
  c.need_rank(0, 4, 4);
  c.need_integer(1);
  c.need_rank(1, 1, 2);
  const Shape &x = c.shape(0), &p = c.shape(1);
  for (int d = 1; d < 4; ++d)
    c.check(x[d].is_constant(), "a dimension but the batch is symbolic",
            "constant positions, heads and width");
  c.check(p == Shape{x[1]} || p == Shape{x[0], x[1]}, "the positions have shape " + p.str(),
          Shape{x[1]}.str() + " or " + Shape{x[0], x[1]}.str());
  c.check(x[3].is_constant() && x[3].max() % 2 == 0, "a head has an odd width",
          "an even last dimension");
  c.check(a.base > 0, "the base is not positive", "base > 0");
  c.out(c.in(0));
}

void evaluate(const A& a, EvalCall& c) {
  const HostArray &x = c.in[0], &positions = c.in[1];
  HostArray& y = c.out[0];
  const std::int64_t length = x.shape[1], heads = x.shape[2], width = x.shape[3];
  const std::int64_t half = width / 2;
  for (std::int64_t token = 0; token < x.shape[0] * length; ++token) {
    const double position = positions[positions.rank() == 2 ? token : token % length];
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < half; ++i) {
        const double turn =
            std::pow(a.base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
        const double angle = position * turn * (a.inverse ? -1 : 1);
        const std::int64_t head = (token * heads + h) * width;
        const std::int64_t p = head + (a.interleaved ? 2 * i : i);
        const std::int64_t q = a.interleaved ? p + 1 : p + half;
        y[p] = x[p] * std::cos(angle) - x[q] * std::sin(angle);
        y[q] = x[q] * std::cos(angle) + x[p] * std::sin(angle);
      }
  }
}

void samples(Samples& s) {
  const auto one = [&](A a, Shape x, Shape positions, double hi, DType type = DType::I32) {
    s.add(a, {{std::move(x)}, ids(std::move(positions), 0, hi, type)});
  };
  one({}, {2, 3, 2, 8}, {3}, 20);
  one({10000, true}, {2, 3, 2, 8}, {3}, 20);
  one({}, {2, 3, 1, 34}, {2, 3}, 1024, DType::I64);
  one({500, true, true}, {2, 3, 5, 2}, {2, 3}, 17);
  one({}, {1, 1, 1, 4098}, {1}, 50);
  one({}, {1, 4097, 1, 2}, {4097}, 5000);
  one({}, {1, 17, 3, 0}, {17}, 50);
  one({}, {0, 3, 2, 4}, {3}, 50);
  for (const bool interleaved : {false, true})
    s.add_special(A{10000, interleaved}, {{{2, 5, 3, 34}}, ids({5}, 0, 50)}, {0});
}

}  // namespace

std::vector<OpDef> rotary_ops() {
  return {define<A>({
      .name = "rotary",
      .doc = "Rotary position embedding: turns each pair of a head's elements by an angle that "
             "grows with the position.",
      .infer = infer,
      .numeric = Numeric::Widen,
      .meaning = Eval<A>(evaluate),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0))
          g.give(0, rotary(g.cotangent(0), g.in(1), {a.base, a.interleaved, !a.inverse}));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(3, in, out); },
      .labels = "b t h *, t -> b t h *",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"RotaryEmbedding", 23},
      .samples = samples,
      .keep_inputs = {1},
  })};
}

Tensor rotary(Operand x, Operand positions, const RotaryAttrs& attrs) {
  return emit_one("rotary", to_attrs(attrs), {x, positions});
}

}  // namespace aloft

#include "ops/rotary.h"

#include <algorithm>
#include <cmath>

#include "ops/op.h"
#include "types/rotary_scaling.h"

namespace aloft {
namespace {

using A = RotaryAttrs;

void infer(const A& a, Infer& c) {
  c.need_count(2, 3);
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
  if (c.count() > 2) {
    c.need_integer(2);
    c.check(c.shape(2) == Shape{x[0]}, "the lengths have shape " + c.shape(2).str(),
            Shape{x[0]}.str());
  }
  c.check(a.turned >= 0 && a.turned <= x[3].max(), "turned is " + std::to_string(a.turned),
          "0 to " + x[3].str() + ", the width of a head");
  const std::int64_t turned = a.turned > 0 ? a.turned : x[3].max();
  c.check(turned % 2 == 0, "an odd number of features turns",
          a.turned > 0 ? "an even number" : "an even last dimension");
  c.check(a.base > 0, "the base is not positive", "base > 0");
  const auto scaling = parse_rotary_scaling(a.scaling);
  c.check(scaling.has_value(), "the scaling is \"" + a.scaling + "\"",
          "a kind and its numbers, such as llama3 factor=8 original=8192 low=1 high=4");
  const std::string need = need_of(*scaling, a.base, turned);
  c.check(need.empty(), "the scaling is \"" + a.scaling + "\"", need);
  c.out(c.in(0));
}

void evaluate(const A& a, EvalCall& c) {
  const HostArray &x = c.in[0], &positions = c.in[1];
  HostArray& y = c.out[0];
  const std::int64_t length = x.shape[1], heads = x.shape[2], width = x.shape[3];
  const std::int64_t turned = a.turned > 0 ? a.turned : width, half = turned / 2;
  const RotaryRates rates = rotary_rates(*parse_rotary_scaling(a.scaling), a.base, turned);
  double longest = 0;
  for (const double p : positions.values) longest = std::max(longest, p + 1);
  for (std::int64_t token = 0; token < x.shape[0] * length; ++token) {
    const double position = positions[positions.rank() == 2 ? token : token % length];
    const std::vector<double>& turns =
        rates.of(c.in.size() > 2 ? static_cast<double>(c.in[2][token / length]) : longest);
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t head = (token * heads + h) * width;
      for (std::int64_t i = turned; i < width; ++i) y[head + i] = x[head + i];
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = position * turns[static_cast<std::size_t>(i)] * (a.inverse ? -1 : 1);
        const double cosine = rates.magnitude * std::cos(angle),
                     sine = rates.magnitude * std::sin(angle);
        const std::int64_t p = head + (a.interleaved ? 2 * i : i);
        const std::int64_t q = a.interleaved ? p + 1 : p + half;
        y[p] = x[p] * cosine - x[q] * sine;
        y[q] = x[q] * cosine + x[p] * sine;
      }
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
  for (const bool interleaved : {false, true}) {
    one({10000, interleaved, false, 6}, {2, 3, 2, 9}, {3}, 20);
    one({10000, interleaved, true, 34}, {2, 3, 2, 80}, {2, 3}, 20);
    s.add_special(A{10000, interleaved}, {{{2, 5, 3, 34}}, ids({5}, 0, 50)}, {0});
  }
  for (const char* scaling : {"linear factor=4", "llama3 factor=8 original=64 low=1 high=4",
                              "yarn factor=4 original=32 magnitude=1.1386294361119891",
                              "yarn factor=4 original=32 fast=8 slow=2 truncate=0"})
    one({10000, false, false, 0, scaling}, {2, 3, 2, 34}, {3}, 100);
  for (const int last : {4, 40})  // within the first positions, and beyond them
    one({10000, false, true, 4, "longrope original=30 magnitude=1.25 within=1,2 beyond=3,5"},
        {1, 3, 2, 6}, {3}, last);
  for (const bool interleaved : {false, true})  // each sequence by its length
    for (const Shape& positions : {Shape{3}, Shape{4, 3}}) {
      const char* scaling = "longrope original=30 magnitude=1.25 within=1,2 beyond=3,5";
      s.add(A{10000, interleaved, false, 4, scaling},
            {{{4, 3, 2, 6}}, ids(positions, 0, 40), ids({4}, 20, 41)}, "lengths");
    }
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
        A back = a;
        back.inverse = !a.inverse;
        if (!g.needs(0)) return;
        g.give(0, g.count() > 2 ? rotary_by_length(g.cotangent(0), g.in(1), g.in(2), back)
                                : rotary(g.cotangent(0), g.in(1), back));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(3, in, out); },
      .labels = "b t h *, t, b -> b t h *",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"RotaryEmbedding", 23},
      .samples = samples,
      .keep_inputs = {1, 2},
  })};
}

Tensor rotary(Operand x, Operand positions, const RotaryAttrs& attrs) {
  return emit_one("rotary", to_attrs(attrs), {x, positions});
}
Tensor rotary_by_length(Operand x, Operand positions, Operand lengths, const RotaryAttrs& attrs) {
  return emit_one("rotary", to_attrs(attrs), {x, positions, lengths});
}

}  // namespace aloft

#include "ops/dropout.h"

#include "ops/op.h"
#include "ops/random.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

using A = DropoutAttrs;

void infer(const A& a, Infer& c) {
  c.need_count(2);
  c.need_float(0);
  const TensorType state{DType::I64, {3}};
  c.check(c.in(1) == state, "the random state has the wrong type", state.str());
  c.check(a.p >= 0 && a.p < 1, "p is out of range", "0 or more and below 1");
  c.out(c.in(0));
}

void evaluate(const A& a, EvalCall& c) {
  const auto word = [&](int i) { return static_cast<std::uint64_t>(c.in[1][i].whole()); };
  const scalar::RandomKey key{word(0), word(1), word(2), static_cast<std::uint64_t>(a.key)};
  const double factor = 1 / (1 - a.p);
  for (std::int64_t i = 0; i < c.out[0].numel(); ++i) {
    const bool kept = scalar::random_bits(key, static_cast<std::uint64_t>(i)) >> 8 >= a.threshold();
    c.out[0][i] = kept ? c.in[0][i] * factor : 0;
  }
}

void samples(Samples& s) {
  const SampleInput rng{{3}, Fill::Ids, 0, 1000, 1, DType::I64, true};
  for (const Shape& shape : {Shape{3, 17}, Shape{0, 4}, Shape{1}, Shape{4097}, Shape{5, 7, 11}})
    s.add(A{0.25, 12345}, {{shape}, rng});
  s.add(A{0, 1}, {{{64}}, rng}, "nothing is dropped");
  s.add(A{0.5, 9}, {{{67}, Fill::Special}, rng}, "special values").gradient = false;
}

}  // namespace

std::vector<OpDef> dropout_ops() {
  return {define<A>({
      .name = "dropout",
      .doc = "Zeroes a random share p of the elements and scales the others by 1 / (1 - p).",
      .infer = infer,
      .numeric = Numeric::Follow,
      .meaning = Eval<A>(evaluate),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0)) g.give(0, emit_one("dropout", to_attrs(a), {g.cotangent(0), g.in(1)}));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(12, in, out); },
      .labels = "..., * -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = no_onnx(),
      .samples = samples,
      .keep_inputs = {1},
  })};
}

Tensor dropout(Operand x, Operand rng, double p) {
  const A attrs{p, draw_key("dropout", rng)};
  return emit_one("dropout", to_attrs(attrs), {x, rng});
}

}  // namespace aloft

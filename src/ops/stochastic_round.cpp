#include "ops/stochastic_round.h"

#include "ops/kept_states.h"
#include "ops/op.h"
#include "scalar/stochastic_rounding.h"

namespace aloft {
namespace {

using A = StochasticRoundAttrs;

void infer(const A& a, Infer& c) {
  c.need_count(2);
  c.check(c.dtype(0) == DType::F32, "what is rounded is " + std::string(name_of(c.dtype(0))),
          "f32");
  const TensorType state{DType::I64, {3}};
  c.check(c.in(1) == state, "the random state has the wrong type", state.str());
  c.check(a.slot >= 0 && a.slot <= scalar::kParameterSlot, "slot is " + std::to_string(a.slot),
          "0 to " + std::to_string(scalar::kParameterSlot));
  c.out(DType::BF16, c.shape(0));
}

void evaluate(const A& a, EvalCall& c) {
  const auto word = [&](int i) { return static_cast<std::uint64_t>(c.in[1][i].whole()); };
  const scalar::RandomKey key{word(0), word(1), word(2), static_cast<std::uint64_t>(a.key)};
  for (std::int64_t i = 0; i < c.out[0].numel(); ++i)
    c.out[0][i] = rounded_at_random(
        c.in[0][i], DType::BF16,
        scalar::rounding_bits(key, static_cast<int>(a.slot), static_cast<std::uint64_t>(i)));
}

void samples(Samples& s) {
  const SampleInput rng{{3}, Fill::Ids, 0, 1000, 1, DType::I64, true};
  const auto x = [](const Shape& shape, Fill fill) {
    return SampleInput{shape, fill, 0, 1, 1, DType::F32, true};
  };
  for (const Shape& shape :
       {Shape{3, 17}, Shape{0, 4}, Shape{}, Shape{1}, Shape{4097}, Shape{5, 7, 11}})
    s.add(A{12345, 0}, {x(shape, Fill::Normal), rng}).gradient = false;
  for (const std::int64_t slot : {1, 2, 8})
    s.add(A{9, slot}, {x({129}, Fill::Normal), rng}).gradient = false;
  s.add(A{9, 1}, {x({67}, Fill::Special), rng}, "special values").gradient = false;
}

}  // namespace

std::vector<OpDef> stochastic_round_ops() {
  return {define<A>({
      .name = "stochastic_round",
      .doc = "x in bf16, each element rounded up or down at random, as probable as it is near: by "
             "16 random bits added below the bits that stay.",
      .infer = infer,
      .numeric = Numeric::Exact,
      .meaning = Eval<A>(evaluate),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(12, in, out); },
      .labels = "..., * -> ...",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  })};
}

Tensor stochastic_round(Operand x, Operand rng, std::int64_t key, int slot) {
  return emit_one("stochastic_round", to_attrs(A{key, slot}), {x, rng});
}

}  // namespace aloft

#include "ops/random.h"

#include <cmath>

#include "base/text.h"
#include "ops/op.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

void need_rng(Infer& c, int i) {
  c.check(c.in(i) == TensorType{DType::I64, Shape{3}}, "the random state has the wrong type",
          "i64[3]: seed, step, micro-batch");
}

scalar::RandomKey key_of(const HostArray& rng, std::int64_t identity) {
  const auto word = [&](int i) { return static_cast<std::uint64_t>(rng[i].whole()); };
  return {word(0), word(1), word(2), static_cast<std::uint64_t>(identity)};
}

SampleInput rng_sample() { return ids({3}, 0, 1000, DType::I64); }

OpDef uniform_op() {
  using A = RandomUniformAttrs;
  return define<A>({
      .name = "random_uniform",
      .doc = "Independent numbers, uniform in [low, high).",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            need_rng(c, 0);
            c.check(is_float(a.dtype), "the element type is not a float", "f64, f32, bf16 or f16");
            c.check(a.low <= a.high && std::isfinite(a.high - a.low),
                    "low is " + shortest(a.low) + ", high is " + shortest(a.high),
                    "finite numbers, low not above high");
            c.out(a.dtype, a.shape);
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const auto key = key_of(c.in[0], a.key);
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i)
          c.out[0][i] = a.low + (a.high - a.low) * scalar::uniform(key, i);
      }),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(20, in, out); },
      .labels = "* -> *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{{3, 17}, 0, 1, DType::F32, 7}, {rng_sample()});
            s.add(A{{4097}, -2, 2, DType::BF16, 8}, {rng_sample()});
            s.add(A{{0}, 0, 1, DType::F16, 9}, {rng_sample()});
            s.add(A{{}, 0, 1, DType::F32, 1}, {rng_sample()});
            s.add(A{{1}, 0, 1, DType::F32, 2}, {rng_sample()});
          },
      .keep_inputs = {0},
  });
}

OpDef normal_op() {
  using A = RandomNormalAttrs;
  return define<A>({
      .name = "random_normal",
      .doc = "Independent numbers of a normal distribution.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            need_rng(c, 0);
            c.check(is_float(a.dtype), "the element type is not a float", "f64, f32, bf16 or f16");
            c.check(a.deviation >= 0, "the deviation is " + shortest(a.deviation), "0 or more");
            c.out(a.dtype, a.shape);
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const auto key = key_of(c.in[0], a.key);
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i)
          c.out[0][i] = a.mean + a.deviation * scalar::normal(key, i);
      }),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(60, in, out); },
      .labels = "* -> *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{{3, 17}, 0, 1, DType::F32, 7}, {rng_sample()});
            s.add(A{{4097}, 1, 0.02, DType::BF16, 8}, {rng_sample()});
            s.add(A{{0}, 0, 1, DType::F16, 9}, {rng_sample()});
            s.add(A{{}, 0, 1, DType::F32, 1}, {rng_sample()});
            s.add(A{{1}, 0, 1, DType::F32, 2}, {rng_sample()});
          },
      .keep_inputs = {0},
  });
}

}  // namespace

std::vector<OpDef> random_ops() { return {uniform_op(), normal_op()}; }

std::int64_t draw_key(Name op, Operand rng) {
  if (!rng.tensor.is_defined()) return 0;  // emitting the op says so
  return rng.tensor.emitter()->random_key(op, rng.tensor);
}

Tensor random_uniform(Operand rng, const Shape& shape, double low, double high, DType dtype) {
  const RandomUniformAttrs attrs{shape, low, high, dtype, draw_key("random_uniform", rng)};
  return emit_one("random_uniform", to_attrs(attrs), {rng});
}
Tensor random_normal(Operand rng, const Shape& shape, double mean, double deviation, DType dtype) {
  const RandomNormalAttrs attrs{shape, mean, deviation, dtype, draw_key("random_normal", rng)};
  return emit_one("random_normal", to_attrs(attrs), {rng});
}

}  // namespace aloft

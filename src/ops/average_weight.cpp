#include "ops/average_weight.h"

#include "ops/op.h"

namespace aloft {
namespace {

using A = AverageWeightAttrs;

void infer(const A& a, Infer& c) {
  c.need_count(2);
  for (const auto& [i, type] : {std::pair{0, DType::I64}, std::pair{1, DType::I32}})
    c.check(c.in(i) == TensorType{type, Shape{}},
            "operand " + std::to_string(i) + " has the wrong type",
            TensorType{type, Shape{}}.str());
  const auto kind = average_named(a.kind);
  c.check(kind && *kind != AverageKind::None, "unknown average '" + a.kind + "'", "ema or swa");
  c.check(a.decay >= 0 && a.decay < 1, "decay is " + std::to_string(a.decay), "0 or more, below 1");
  c.check(a.from >= 0, "from is " + std::to_string(a.from), "0 or more");
  c.out(DType::F32, {});
}

void samples(Samples& s) {
  const auto value = [](DType dtype, double v) {
    return SampleInput{{}, Fill::Constant, v, v, 1, dtype, true};
  };
  for (const A& a :
       {A{}, A{.kind = "swa"}, A{.decay = 0.5, .from = 10}, A{.kind = "swa", .from = 10}})
    for (const double applied : {0.0, 10.0, 11.0, 1000.0})
      for (const double finite : {0.0, 1.0})
        s.add(a, {value(DType::I64, applied), value(DType::I32, finite)}).gradient = false;
}

OpDef average_weight_op() {
  return define<A>({
      .name = "average_weight",
      .doc = "The share of a weight's new value in its mean: 1 up to `from` applied updates, then "
             "1 - decay (ema), or 1 over the number of values so far (swa); 0 of a skipped step.",
      .infer = infer,
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        c.out[0][0] = c.in[1][0] != 0 ? a.weight_after(static_cast<std::int64_t>(c.in[0][0])) : 0.0;
      }),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(2, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  });
}

}  // namespace

std::vector<OpDef> average_weight_ops() { return {average_weight_op()}; }

Tensor average_weight(Operand applied, Operand finite, const Averaging& a) {
  return emit_one("average_weight", to_attrs(A{std::string(name_of(a.kind)), a.decay, a.from}),
                  {applied, finite});
}

}  // namespace aloft

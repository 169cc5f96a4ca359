#include "ops/scaler_update.h"

#include "ops/op.h"
#include "ops/step_tensors.h"

namespace aloft {
namespace {

using A = ScalerUpdateAttrs;

void infer(const A& a, Infer& c) {
  using enum scalar::ScalerKind;
  c.need_count(5);
  c.check(a.kind == name_of(None) || a.kind == name_of(Fixed) || a.kind == name_of(Dynamic),
          "unknown kind '" + a.kind + "'", "none, fixed or dynamic");
  constexpr DType kTypes[] = {DType::F32, DType::I32, DType::I32, DType::I64, DType::I32};
  for (int i = 0; i < 5; ++i) {
    const TensorType type{kTypes[i], Shape{}};
    c.check(c.in(i) == type, "operand " + std::to_string(i) + " has the wrong type", type.str());
    if (i < 4) c.out(type);
  }
}

void evaluate(const A& a, EvalCall& c) {
  const scalar::ScalerState before{
      static_cast<float>(c.in[0][0]), static_cast<std::int32_t>(c.in[1][0]),
      static_cast<std::int32_t>(c.in[2][0]), static_cast<std::int64_t>(c.in[3][0])};
  const scalar::ScalerState after = scalar::next(before, c.in[4][0] != 0, a.rule());
  c.out[0][0] = after.scale;
  c.out[1][0] = after.good_steps;
  c.out[2][0] = after.overflow_run;
  c.out[3][0] = static_cast<double>(after.skipped);
}

void samples(Samples& s) {
  const auto one = [&](const A& a, double scale, int good, int run, int skipped, bool finite) {
    const auto value = [](DType dtype, double v) {
      return SampleInput{{}, Fill::Constant, v, v, 1, dtype, true};
    };
    s.add(a, {value(DType::F32, scale), value(DType::I32, good), value(DType::I32, run),
              value(DType::I64, skipped), value(DType::I32, finite)})
        .gradient = false;
  };
  const A dynamic = A::of(scalar::dynamic_scaler());
  one(dynamic, 65536, 5, 0, 0, true);
  one(dynamic, 65536, 1999, 0, 3, true);
  one(dynamic, 16777216, 1999, 0, 3, true);
  one(dynamic, 65536, 1999, 2, 3, false);
  one(dynamic, 1, 0, 9, 12, false);
  one(A::of(scalar::fixed_scaler()), 128, 0, 1, 1, false);
  one(A::of(scalar::no_scaler()), 1, 0, 0, 0, true);
}

}  // namespace

std::vector<OpDef> scaler_update_ops() {
  return {define<A>({
      .name = "scaler_update",
      .doc = "The loss scaler's next state from (scale, good_steps, overflow_run, skipped) and "
             "whether the step's gradients were all finite.",
      .infer = infer,
      .numeric = Numeric::Exact,
      .meaning = Eval<A>(evaluate),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  })};
}

ScalerTensors scaler_update(const ScalerTensors& state, Operand finite,
                            const scalar::ScalerRule& rule) {
  const Operand in[] = {{state.scale, finite.loc},
                        {state.good_steps, finite.loc},
                        {state.overflow_run, finite.loc},
                        {state.skipped, finite.loc},
                        finite};
  const auto out = emit_op("scaler_update", to_attrs(A::of(rule)), in);
  return {out[0], out[1], out[2], out[3]};
}

}  // namespace aloft

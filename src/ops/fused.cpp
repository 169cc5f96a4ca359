// The meaning of a fused call is its steps, called one after the other: a kernel may keep what lies
// between them in the first cache, and rounds it to each step's own type nevertheless. The pass
// fuse-elementwise makes these calls.
#include "ops/fused.h"

#include "ops/op.h"
#include "types/step_program.h"

namespace aloft {
namespace {

using A = FusedAttrs;

StepProgram program_of(const A& a, std::size_t inputs) {
  return parse_step_program(a.program, static_cast<int>(inputs));
}

std::vector<TensorType> operands_of(const ProgramStep& step, const std::vector<TensorType>& types) {
  std::vector<TensorType> in;
  for (int v : step.in) in.push_back(types[static_cast<std::size_t>(v)]);
  return in;
}

void infer(const A& a, Infer& c) {
  const StepProgram program = program_of(a, static_cast<std::size_t>(c.count()));
  std::vector<TensorType> types;
  types.reserve(static_cast<std::size_t>(c.count()) + program.steps.size());
  for (int i = 0; i < c.count(); ++i) types.push_back(c.in(i));
  for (const ProgramStep& step : program.steps) {
    const OpDef& op = op_named(step.op);
    c.check(op.name != Name(kFusedOp) && op.fusion != Fusion::Opaque,
            "'" + step.op.str() + "' is no step of a program",
            "ops that work element by element, and sums of their results");
    const std::vector<TensorType> out =
        infer_types(op, step.attrs, operands_of(step, types), current_where());
    c.check(out.size() == 1 && out[0].dtype == step.dtype,
            "step '" + step.op.str() + "' has another result",
            out.size() == 1 ? std::string(name_of(out[0].dtype)) : "one result");
    types.push_back(out[0]);
  }
  for (int v : program.out) c.out(types[static_cast<std::size_t>(v)]);
}

std::vector<Tensor> body(const A& a, std::span<const Tensor> in) {
  const StepProgram program = program_of(a, in.size());
  std::vector<Tensor> values(in.begin(), in.end());
  for (const ProgramStep& step : program.steps) {
    std::vector<Operand> operands;
    for (int v : step.in) operands.emplace_back(values[static_cast<std::size_t>(v)]);
    values.push_back(emit_op(step.op, step.attrs, operands)[0]);
  }
  std::vector<Tensor> out;
  for (int v : program.out) out.push_back(values[static_cast<std::size_t>(v)]);
  return out;
}

// The steps' operations; what lies between the steps is not moved.
Cost cost(const A& a, CallTypes in, CallTypes out) {
  Cost c = elementwise_cost(0, in, out);
  std::vector<TensorType> types(in.begin(), in.end());
  for (const ProgramStep& step : program_of(a, in.size()).steps) {
    const OpDef& op = op_named(step.op);
    const std::vector<TensorType> operands = operands_of(step, types);
    types.push_back(infer_types(op, step.attrs, operands, current_where())[0]);
    c.flops += op.cost(step.attrs, operands, {&types.back(), 1}).flops;
  }
  return c;
}

void samples(Samples& s) {
  const auto add = [&](const char* program, std::vector<SampleInput> in, double tolerance) {
    Sample& sample = s.add(A{program}, std::move(in), "each step rounds, the meaning does not");
    sample.tolerance = tolerance;
    sample.gradient = false;
    return &sample;
  };
  const auto as = [](DType t, Shape shape) {
    return SampleInput{std::move(shape), Fill::Normal, -1, 1, 1, t, true};
  };
  const DType f32 = DType::F32, bf16 = DType::BF16, f16 = DType::F16, f64 = DType::F64;
  add("%2 = mul(%0, %1) : f32; %3 = sigmoid(%2) : f32; return %3",
      {as(f32, {3, 17}), as(f32, {17})}, 2);
  add("%2 = silu(%0) : bf16; %3 = mul(%2, %1) : bf16; return %2, %3",
      {as(bf16, {5, 1031}), as(bf16, {5, 1031})}, 3);
  add("%2 = cast(%0) {to=f32} : f32; %3 = add(%2, %1) : f32; %4 = cast(%3) {to=f16} : f16; "
      "%5 = less(%3, %2) : bool; %6 = where(%5, %0, %4) : f16; return %6, %3",
      {as(f16, {4097}), as(f32, {1})}, 3);
  add("%3 = sub(%0, %1) : f64; %4 = square(%3) : f64; %5 = mul(%4, %2) : f64; return %5",
      {as(f64, {4, 3, 5}), as(f64, {3, 1}), as(f64, {})}, 4)
      ->gradient = true;
  const SampleInput rng{{3}, Fill::Ids, 0, 1000, 1, DType::I64, true};
  add("%3 = mul(%0, %1) : bf16; %4 = dropout(%3, %2) {p=0.25, key=77} : bf16; return %3, %4",
      {as(bf16, {3, 1031}), as(bf16, {1031}), rng}, 3);
  add("%1 = abs(%0) : f32; %2 = sqrt(%1) : f32; return %2", {as(f32, {0, 3})}, 2);
}

}  // namespace

std::vector<OpDef> fused_ops() {
  return {define<A>({
      .name = std::string(kFusedOp),
      .doc = "A program of element-wise steps as one call: what the steps give one by one.",
      .infer = infer,
      .numeric = Numeric::Exact,
      .meaning = Body<A>(body),
      .vjp = FromBody{},
      .cost = cost,
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  })};
}

std::vector<Tensor> fused(const std::string& program, const std::vector<Tensor>& in) {
  std::vector<Operand> operands(in.begin(), in.end());
  return emit_op(Name(kFusedOp), to_attrs(FusedAttrs{program}), operands);
}

}  // namespace aloft

#include "ops/learning_rate.h"

#include "base/error.h"
#include "ops/op.h"

namespace aloft {
namespace {

using A = LearningRateAttrs;

void need_scalar(Infer& c, int i, DType dtype) {
  const TensorType type{dtype, Shape{}};
  c.check(c.in(i) == type, "operand " + std::to_string(i) + " has the wrong type", type.str());
}

// What is wrong with its texts, which are read where the rule is made; "" where they are well.
std::string mistake_of(const A& a) {
  try {
    a.rule();
  } catch (const Error& e) {
    return std::string(e.headline());
  }
  return "";
}

SampleInput value(DType dtype, double v) { return {{}, Fill::Constant, v, v, 1, dtype, true}; }

void samples(Samples& s) {
  using enum scalar::ScheduleKind;
  const auto one = [&](const scalar::ScheduleRule& rule, double applied) {
    s.add(A::of(0.125, rule), {value(DType::I64, applied)}).gradient = false;
  };
  one({}, 0);
  one({.kind = Linear, .warmup = 10, .total = 100}, 3);
  one({.kind = Cosine, .warmup = 10, .total = 100, .min_factor = 0.1}, 57);
  one({.kind = Step, .step_size = 7, .gamma = 0.5}, 15);
  one({.kind = OneCycle, .total = 100}, 50);
  one({.kind = Wsd, .warmup = 5, .total = 100, .decay = 20}, 91);
  one({.kind = Polynomial, .total = 100, .min_factor = 0.25, .power = 2}, 91);
  one({.kind = Exponential, .warmup = 5, .gamma = 0.875}, 15);
  one({.kind = MultiStep, .gamma = 0.5, .milestones = {3, 7, 20}}, 7);
  one({.kind = InverseSqrt, .warmup = 5}, 91);
  one({.kind = CosineRestarts, .min_factor = 0.25, .cycle = 7, .growth = 2}, 30);
  one({.kind = Linear, .total = 10, .min_factor = 1, .start_factor = 0.25}, 3);
  one({.kind = LowStart, .step_size = 5, .start_factor = 0.25}, 4);
  one({.kind = Triangular, .min_factor = 0.25, .step_size = 4, .step_down = 8}, 10);
  one({.kind = Triangular2, .step_size = 4}, 10);
  one({.kind = ExpRange, .step_size = 4, .gamma = 0.875}, 10);
  one({.kind = Table, .factors = {1, 0.5, 0.3}}, 2);
  const scalar::ScheduleRule rise{
      .kind = Linear, .total = 4, .min_factor = 1, .start_factor = 0.25},
      fall{.kind = Exponential, .gamma = 0.875};
  one({.kind = Product, .parts = {rise, fall}}, 3);
  one({.kind = Sequence,
       .milestones = {5, 9},
       .parts = {rise, fall, {.kind = Product, .parts = {{}, fall}}}},
      12);
}

OpDef learning_rate_op() {
  return define<A>({
      .name = "learning_rate",
      .doc = "The schedule's factor after `applied` applied updates, times the base rate.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            need_scalar(c, 0, DType::I64);
            c.check(scalar::parse_schedule_kind(a.kind).has_value(),
                    "unknown schedule '" + a.kind + "'", scalar::schedule_kind_names());
            const std::string wrong = mistake_of(a);
            c.check(wrong.empty(), wrong, "what a schedule's rule writes");
            const std::string_view problem = scalar::problem_of(a.rule());
            c.check(problem.empty(), "the schedule cannot be followed", problem);
            c.out(DType::F32, {});
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        c.out[0][0] =
            a.lr * scalar::schedule_factor(a.rule(), static_cast<std::int64_t>(c.in[0][0]));
      }),
      .vjp = NoGradient{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(10, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  });
}

OpDef count_applied_op() {
  return define<NoAttrs>({
      .name = "count_applied",
      .doc = "applied + finite: the count of updates that changed the parameters.",
      .infer =
          [](const NoAttrs&, Infer& c) {
            c.need_count(2);
            need_scalar(c, 0, DType::I64);
            need_scalar(c, 1, DType::I32);
            c.out(DType::I64, {});
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<NoAttrs>(
          [](const NoAttrs&, EvalCall& c) { c.out[0][0] = c.in[0][0] + (c.in[1][0] != 0); }),
      .vjp = NoGradient{},
      .cost = [](const NoAttrs&, CallTypes in,
                 CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(NoAttrs{}, {value(DType::I64, 41), value(DType::I32, 1)}).gradient = false;
            s.add(NoAttrs{}, {value(DType::I64, 41), value(DType::I32, 0)}).gradient = false;
          },
  });
}

}  // namespace

std::vector<OpDef> learning_rate_ops() { return {learning_rate_op(), count_applied_op()}; }

Tensor learning_rate(Operand applied, double lr, const scalar::ScheduleRule& rule) {
  return emit_one("learning_rate", to_attrs(LearningRateAttrs::of(lr, rule)), {applied});
}
Tensor count_applied(Operand applied, Operand finite) {
  return emit_one("count_applied", {}, {applied, finite});
}

}  // namespace aloft

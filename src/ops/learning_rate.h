// The learning rate as device state: a function of how many updates were applied, and that count.
#pragma once

#include "ops/declared.h"
#include "scalar/schedule.h"

namespace aloft {

struct LearningRateAttrs {
  double lr = 1e-3;
  std::string kind = "constant";
  std::int64_t warmup = 0;
  std::int64_t total = 0;
  double min_factor = 0;
  std::int64_t step_size = 0;
  double gamma = 0.1;
  std::int64_t decay = 0;
  double div = 25.0;
  double final_div = 1e4;
  double power = 1;
  Ints milestones;
  std::int64_t cycle = 0, growth = 1;
  static constexpr auto fields() {
    using A = LearningRateAttrs;
    return FieldList{field("lr", &A::lr, "base rate"),
                     field("kind", &A::kind, "the form: a name of scalar/schedule.h"),
                     field("warmup", &A::warmup, "updates of linear warm-up"),
                     field("total", &A::total, "updates of the whole run"),
                     field("min_factor", &A::min_factor, "smallest factor on the base rate"),
                     field("step_size", &A::step_size, "updates between drops (step)"),
                     field("gamma", &A::gamma, "factor of a drop (step, multi-step, exponential)"),
                     field("decay", &A::decay, "updates of the final decay (wsd)"),
                     field("div", &A::div, "peak over start (one-cycle)"),
                     field("final_div", &A::final_div, "start over end (one-cycle)"),
                     field("power", &A::power, "of what is left of the run (polynomial)"),
                     field("milestones", &A::milestones, "updates before each drop (multi-step)"),
                     field("cycle", &A::cycle, "updates of the first cycle (cosine-restarts)"),
                     field("growth", &A::growth, "of cycles, one to the next (cosine-restarts)")};
  }
  static LearningRateAttrs of(double lr, const scalar::ScheduleRule& r) {
    return {lr,           std::string(scalar::name_of(r.kind)),
            r.warmup,     r.total,
            r.min_factor, r.step_size,
            r.gamma,      r.decay,
            r.div,        r.final_div,
            r.power,      r.milestones,
            r.cycle,      r.growth};
  }
  scalar::ScheduleRule rule() const {
    const auto k = scalar::parse_schedule_kind(kind);
    return {k.value_or(scalar::ScheduleKind::Constant),
            warmup,
            total,
            min_factor,
            step_size,
            gamma,
            decay,
            div,
            final_div,
            power,
            milestones,
            cycle,
            growth};
  }
};

// The rate of the update made after `applied` (i64[]) applied ones: f32[].
Tensor learning_rate(Operand applied, double lr, const scalar::ScheduleRule& rule);
// applied (i64[]) + finite (i32[]): a skipped step does not count.
Tensor count_applied(Operand applied, Operand finite);

}  // namespace aloft

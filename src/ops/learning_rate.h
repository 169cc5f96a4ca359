// The learning rate as device state: a function of how many updates were applied, and that count.
#pragma once

#include <string>

#include "ops/declared.h"
#include "ops/schedule_text.h"
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
  double start_factor = 1;
  std::int64_t step_down = 0;
  std::string factors, parts;
  static constexpr auto fields() {
    using A = LearningRateAttrs;
    return FieldList{
        field("lr", &A::lr, "base rate"),
        field("kind", &A::kind, "the form: a name of scalar/schedule.h"),
        field("warmup", &A::warmup, "updates of linear warm-up"),
        field("total", &A::total, "updates of the whole run"),
        field("min_factor", &A::min_factor, "smallest factor on the base rate"),
        field("step_size", &A::step_size, "updates between drops (step), of a start or a rise"),
        field("gamma", &A::gamma, "factor of a drop (step, multi-step, exponential, exp-range)"),
        field("decay", &A::decay, "updates of the final decay (wsd)"),
        field("div", &A::div, "peak over start (one-cycle)"),
        field("final_div", &A::final_div, "start over end (one-cycle)"),
        field("power", &A::power, "of what is left of the run (polynomial)"),
        field("milestones", &A::milestones,
              "updates before each drop (multi-step), each next part"),
        field("cycle", &A::cycle, "updates of the first cycle (cosine-restarts)"),
        field("growth", &A::growth, "of cycles, one to the next (cosine-restarts)"),
        field("start_factor", &A::start_factor, "the first (linear, low-start)"),
        field("step_down", &A::step_down, "updates of a fall (triangular)"),
        field("factors", &A::factors, "one an update, with spaces (table)"),
        field("parts", &A::parts, "attributes of each part (sequence, product)")};
  }
  static LearningRateAttrs of(double lr, const scalar::ScheduleRule& r) {
    return {lr,
            std::string(scalar::name_of(r.kind)),
            r.warmup,
            r.total,
            r.min_factor,
            r.step_size,
            r.gamma,
            r.decay,
            r.div,
            r.final_div,
            r.power,
            r.milestones,
            r.cycle,
            r.growth,
            r.start_factor,
            r.step_down,
            text_of_factors(r.factors),
            text_of_parts(r.parts)};
  }
  scalar::ScheduleRule rule() const {
    const auto k = scalar::parse_schedule_kind(kind);
    scalar::ScheduleRule r{k.value_or(scalar::ScheduleKind::Constant),
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
    r.start_factor = start_factor;
    r.step_down = step_down;
    r.factors = factors_of_text(factors);
    r.parts = parts_of_text(parts);
    return r;
  }

 private:
  // {part0="{...}", part1="{...}"}, each the attributes of one that differ from a constant's.
  static std::string text_of_parts(const std::vector<scalar::ScheduleRule>& parts);
  static std::vector<scalar::ScheduleRule> parts_of_text(const std::string& text);
};

inline std::string LearningRateAttrs::text_of_parts(
    const std::vector<scalar::ScheduleRule>& parts) {
  if (parts.empty()) return "";
  Attrs all;
  const Attrs usual = to_attrs(LearningRateAttrs());
  for (const scalar::ScheduleRule& part : parts) {
    Attrs one = to_attrs(of(LearningRateAttrs().lr, part));
    for (const auto& [name, value] : usual.all())
      if (*one.find(name) == value) one.erase(name);
    all.set("part" + std::to_string(all.all().size()), one.str());
  }
  return all.str();
}
inline std::vector<scalar::ScheduleRule> LearningRateAttrs::parts_of_text(const std::string& text) {
  std::vector<scalar::ScheduleRule> parts;
  if (text.empty()) return parts;
  const Attrs all = parse_attrs(text);
  for (const auto& [name, value] : all.all()) {
    const auto* one = std::get_if<std::string>(&value);
    if (!one) throw_unknown_attr(name.str(), "text");
    parts.push_back(
        from_attrs<LearningRateAttrs>(one->empty() ? Attrs() : parse_attrs(*one)).rule());
  }
  return parts;
}

// The rate of the update made after `applied` (i64[]) applied ones: f32[].
Tensor learning_rate(Operand applied, double lr, const scalar::ScheduleRule& rule);
// applied (i64[]) + finite (i32[]): a skipped step does not count.
Tensor count_applied(Operand applied, Operand finite);

}  // namespace aloft

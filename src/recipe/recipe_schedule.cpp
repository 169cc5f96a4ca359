// [schedule]: what it means for the library, and whether it works out.
#include "recipe/recipe_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "recipe/optimizer_mistakes.h"
#include "recipe/recipe_fields.h"

namespace aloft {
namespace {

// The lowest rate. What falls freely goes on as far as it leads, as torch's StepLR.
double final_lr(const Recipe& r) {
  if (r.schedule.final_lr >= 0) return r.schedule.final_lr;
  return falls_freely(*scalar::parse_schedule_kind(r.schedule.kind)) ? 0 : r.optimizer.lr / 10;
}

// The keys of [schedule] that somebody has set, with where.
std::string settings_of(const Recipe& recipe) {
  Recipe copy = recipe;
  std::string out;
  for (const RecipeField& f : recipe_fields(copy))
    if (const std::string key(f.key); key.starts_with("schedule.") && recipe.origin.contains(key))
      std::visit(
          [&](const auto* v) {
            out += fmt::format("{}{} = {} ({})", out.empty() ? "" : ", ", key,
                               json_text(nlohmann::json(*v)), origin_of(recipe, key));
          },
          f.target);
  return out;
}

scalar::ScheduleRule rule_of(const Recipe& r) {
  scalar::ScheduleRule rule;
  rule.kind = *scalar::parse_schedule_kind(r.schedule.kind);
  rule.warmup = r.schedule.warmup;
  // A short trial of a longer recipe stays in its warm-up.
  const std::int64_t span = r.schedule.steps > 0 ? r.schedule.steps : r.train.steps;
  rule.total = std::max(span, rule.warmup + 1);
  rule.min_factor = r.optimizer.lr > 0 ? final_lr(r) / r.optimizer.lr : 0;
  rule.step_size = r.schedule.step_size;
  rule.step_down = r.schedule.step_down;
  rule.start_factor = r.schedule.start_factor;
  rule.gamma = r.schedule.gamma;
  rule.decay = r.schedule.decay;
  rule.power = r.schedule.power;
  rule.milestones = r.schedule.milestones;
  rule.cycle = r.schedule.cycle;
  rule.growth = r.schedule.growth;
  rule.patience = r.schedule.patience;
  rule.cooldown = r.schedule.cooldown;
  rule.threshold = r.schedule.threshold;
  rule.div = r.schedule.div;
  rule.final_div = r.schedule.final_div;
  return rule;
}

std::optional<ScheduleProblem> problem_of_rule(const Recipe& r, const scalar::ScheduleRule& rule) {
  if (rule.min_factor > 1)
    return ScheduleProblem{"schedule.final_lr",
                           fmt::format("schedule.final_lr = {} ({}), above optimizer.lr = {} ({})",
                                       r.schedule.final_lr, origin_of(r, "schedule.final_lr"),
                                       r.optimizer.lr, origin_of(r, "optimizer.lr")),
                           "the rate falls from optimizer.lr, its peak, to schedule.final_lr, "
                           "which must not be above"};
  if (const std::string_view problem = problem_of(rule); !problem.empty())
    return ScheduleProblem{"schedule.kind", settings_of(r), std::string(problem)};
  return std::nullopt;
}

}  // namespace

std::optional<ScheduleProblem> schedule_problem(const Recipe& recipe) {
  scalar::ScheduleRule rule = rule_of(recipe);
  constexpr std::int64_t kAnyLength = 1'000'000'000'000'000;  // train.steps itself takes no more
  if (recipe.train.epochs > 0 && recipe.schedule.steps == 0)
    rule.total = std::max(kAnyLength, rule.warmup + 1);
  return problem_of_rule(recipe, rule);
}

scalar::ScheduleRule schedule_rule(const Recipe& recipe) {
  scalar::ScheduleRule rule = rule_of(recipe);
  const std::optional<ScheduleProblem> problem = problem_of_rule(recipe, rule);
  if (!problem) return rule;
  throw UserError("E0715", "the schedule does not work out").saw(problem->saw).need(problem->need);
}

}  // namespace aloft

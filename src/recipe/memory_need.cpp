#include "recipe/memory_need.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/current_device.h"

namespace aloft {
namespace {

// Bytes of a parameter with its gradient, master and moments.
double bytes_a_parameter(const Recipe& r) {
  const bool is_low = r.precision.is_resolved() && r.precision.level >= Level::O2;
  const double weight = is_low ? 2 : 4;
  const double master = !is_low || r.precision.level == Level::O3                      ? 0
                        : state_format_named(r.optimizer.master) == StateFormat::Split ? 2
                                                                                       : 4;
  const auto states = state_format_named(r.optimizer.states);
  const double state = states == StateFormat::BF16 ? 2 : states == StateFormat::Block8 ? 1 : 4;
  const UpdateRule rule = optimizer_rule(r.optimizer);
  const double moments = state * (rule ? rule.formula->least_states : 0);
  const double gradient = r.optimizer.update == "early" ? 0 : weight;
  const double average = r.optimizer.average == "none" ? 0 : 4;
  return weight + gradient + master + moments + average;
}

// What the family says of an example; 0 where it says nothing.
double activation_bytes(const Recipe& r) {
  const auto& least_kept = model_spec(r).family->least_kept;
  if (!least_kept) return 0;
  const bool may_be_low = !r.precision.is_resolved() || r.precision.level != Level::O0;
  SettingValues settings = r.model.settings;
  if (const auto context = settings.find("context"); context != settings.end())
    context->second = tokens_an_example(r);
  return static_cast<double>(r.train.batch) * least_kept(settings) * (may_be_low ? 2 : 4);
}

}  // namespace

double least_memory(const Recipe& r, const SettingValues& of_data) {
  models::ModelSpec spec = model_spec(r, of_data);
  for (const models::ModelSetting& s : spec.family->settings)
    if (s.role.is_of_data)  // nobody knows yet: the least that there is
      if (auto& value = std::get<std::int64_t>(spec.settings.find(s.key)->second); value == 0)
        value = s.limits.least > 1 ? static_cast<std::int64_t>(s.limits.least) : 1;
  return static_cast<double>(models::parameter_count(spec)) * bytes_a_parameter(r) +
         activation_bytes(r);
}

void need_memory_for(const Recipe& r, const SettingValues& of_data) {
  const std::int64_t tokens = tokens_an_example(r);
  const std::string examples = tokens > 1 ? fmt::format("{} x {} tokens", r.train.batch, tokens)
                                          : fmt::format("{} examples", r.train.batch);
  current_device().need_memory(
      least_memory(r, of_data),
      fmt::format("{} on {}, at least", models::describe(model_spec(r)), examples), kLessMemory);
}

void need_memory_for(const Plan& plan, std::string_view advice, std::size_t copy) {
  const auto bytes = static_cast<double>(plan.peak_bytes() + copy);
  std::string what = arenas_text(plan);
  if (copy > 0) what += " and a copy of the state for checkpoints (" + human_bytes(copy) + ")";
  double state = 0;  // in use now where the model has its values; they move into the plan's memory
  for (const StateSlot& slot : plan.state) state += static_cast<double>(slot.type.max_bytes());
  current_device().need_memory(bytes, what, advice, state);
  warn_of_memory(bytes, what, advice);
}

bool is_room_for_copy(const Plan& plan, std::size_t copy) {
  try {
    current_device().need_memory(static_cast<double>(plan.peak_bytes() + copy), "", "");
    return true;
  } catch (const EnvironmentError&) {
    log_warning(
        "there is no room for a copy of the state of {}: training waits while checkpoints "
        "are written",
        human_bytes(copy));
    return false;
  }
}

bool warn_of_memory_for(const Plan& plan, std::string_view advice, std::size_t copy) {
  try {
    need_memory_for(plan, advice, copy);
    return true;
  } catch (const EnvironmentError& e) {
    log_warning("this machine cannot run it: {}", e.what());
    return false;
  }
}

}  // namespace aloft

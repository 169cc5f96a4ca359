// A recipe as text, and what its sections mean for the library.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "precision/recipe_json.h"
#include "recipe/recipe.h"
#include "recipe/recipe_fields.h"
#include "recipe/recipe_json.h"
#include "recipe/recipe_unused.h"
#include "runtime/current_device.h"

namespace aloft {

using nlohmann::json;

namespace {

// As TOML: an object becomes an inline table.
std::string value_text(const json& value) {
  if (value.is_object()) {
    std::string inside;
    for (const auto& [key, v] : value.items())
      inside += (inside.empty() ? "" : ", ") + key + " = " + value_text(v);
    return "{ " + inside + " }";
  }
  if (value.is_array() && !value.empty() && value[0].is_object()) {
    std::string inside;
    for (const json& v : value) inside += (inside.empty() ? "" : ", ") + value_text(v);
    return "[" + inside + "]";
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string origin_of(const Recipe& recipe, const std::string& key) {
  const auto it = recipe.origin.find(key);
  const std::string origin = it == recipe.origin.end() ? "default" : it->second;
  const char* device = std::getenv("ALOFT_DEVICE");
  if (key == "train.device" && recipe.train.device.empty() && device && *device)
    return origin + "; ALOFT_DEVICE names " + in_quotes(device);
  return key == "optimizer.no_decay" ? origin + "; norms never decay" : origin;
}

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
    if (f.key.starts_with("schedule.") && recipe.origin.contains(std::string(f.key)))
      std::visit(
          [&](const auto* v) {
            out += fmt::format("{}{} = {} ({})", out.empty() ? "" : ", ", f.key,
                               value_text(json(*v)), origin_of(recipe, std::string(f.key)));
          },
          f.target);
  return out;
}

}  // namespace

void to_json(json& out, const ParameterGroup& group) {
  out = json::object();
  out["parameters"] = group.parameters;
  for (const GroupNumber& n : kGroupNumbers)
    if (const auto& value = group.*n.member) out[std::string(n.name)] = *value;
}

std::string print_config(const Recipe& recipe) {
  Recipe copy = recipe;
  std::string out, section;
  const auto line = [&](std::string_view key, const std::string& value) {
    const auto dot = key.find('.');
    if (key.substr(0, dot) != section) {
      section = key.substr(0, dot);
      out += (out.empty() ? "[" : "\n[") + section + "]\n";
    }
    const std::string text = fmt::format("{} = {}", key.substr(dot + 1), value);
    out += fmt::format("{:<48} # {}\n", text, origin_of(recipe, std::string(key)));
  };
  const std::vector<UnusedKey> unused = unused_keys(recipe, true);
  const auto is_unused = [&](std::string_view key) {
    return std::any_of(unused.begin(), unused.end(), [&](const auto& u) { return u.key == key; });
  };
  bool precision_done = false;
  for (const RecipeField& f : recipe_fields(copy)) {
    if (f.key.substr(0, 9) == "optimizer" && !precision_done) {
      precision_done = true;
      out += "\n[precision]\n";
      const json precision = json_of(recipe.precision);  // items() borrows it
      for (const auto& [key, value] : precision.items())
        out += fmt::format("{:<48} # {}\n", key + " = " + value_text(value),
                           origin_of(recipe, "precision." + key));
      section = "precision";
    }
    if (f.key == "train.steps" && recipe.train.epochs > 0)
      out += "# steps follow from epochs and the data\n";
    else if (is_unused(f.key))
      out += fmt::format("# {} is not used here\n", f.key);
    else
      std::visit([&](const auto* v) { line(f.key, value_text(json(*v))); }, f.target);
  }
  return out;
}

json json_of(const Recipe& recipe) {
  Recipe copy = recipe;
  json out = json::object();
  for (const RecipeField& f : recipe_fields(copy)) {
    json* at = &out;
    std::string_view key = f.key;
    for (auto dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      at = &(*at)[std::string(key.substr(0, dot))];
      key = key.substr(dot + 1);
    }
    std::visit([&](const auto* v) { (*at)[std::string(key)] = *v; }, f.target);
  }
  out["precision"] = json_of(recipe.precision);
  return out;
}

scalar::ScheduleRule schedule_rule(const Recipe& r) {
  scalar::ScheduleRule rule;
  rule.kind = *scalar::parse_schedule_kind(r.schedule.kind);
  rule.warmup = r.schedule.warmup;
  // A short trial of a longer recipe stays in its warm-up.
  const std::int64_t span = r.schedule.steps > 0 ? r.schedule.steps : r.train.steps;
  rule.total = std::max(span, rule.warmup + 1);
  rule.min_factor = r.optimizer.lr > 0 ? final_lr(r) / r.optimizer.lr : 0;
  rule.step_size = r.schedule.step_size;
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
  if (rule.min_factor > 1)
    throw UserError("E0715", "the schedule does not work out")
        .saw(fmt::format("schedule.final_lr = {} ({}), above optimizer.lr = {} ({})",
                         r.schedule.final_lr, origin_of(r, "schedule.final_lr"), r.optimizer.lr,
                         origin_of(r, "optimizer.lr")))
        .need("a rate that falls from optimizer.lr, its peak, to schedule.final_lr")
        .advice("a lower schedule.final_lr, or a higher optimizer.lr");
  if (const std::string_view problem = problem_of(rule); !problem.empty())
    throw UserError("E0715", "the schedule does not work out").saw(settings_of(r)).need(problem);
  return rule;
}

Device* device_of(const Recipe& r) {
  if (r.train.device.empty()) return nullptr;
  try {
    return &device_named(r.train.device);
  } catch (UserError& e) {
    e.add_line("at", "train.device, " + origin_of(r, "train.device"));
    throw;
  }
}

}  // namespace aloft

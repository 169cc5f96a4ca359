#include "train/resume_changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "precision/recipe_json.h"

namespace aloft {
namespace {

using nlohmann::json;

constexpr std::string_view kTheSameOrNew =
    "the values that the run had, or a new run: another --out, without --resume";

// The value at "train.batch" of a recipe's JSON; null where there is none.
json value_at(const json& recipe, std::string_view key) {
  const json* at = &recipe;
  for (std::string_view part : split(key, '.')) {
    if (!at->is_object()) return nullptr;
    const auto it = at->find(std::string(part));
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return *at;
}

std::string shown(const json& value) {
  std::string text = json_text(value);
  constexpr std::size_t kMost = 120;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

// What a key that must stay decides of what a checkpoint holds.
std::string_view why_fixed(std::string_view key) {
  if (key == "precision")
    return "the checkpoint's weights, sums and loss scale are of its precision";
  if (key.starts_with("optimizer.")) return "the checkpoint's moments are of its update rule";
  if (key.starts_with("data.")) return "another tokenizer gives every id another meaning";
  return "the weights would mean something else";
}

// A line of say_changes.
std::string line_of(std::string_view key, const json& before, const json& now) {
  return fmt::format("\n  {}: {} -> {}", key, shown(before), shown(now));
}

// Whether the schedule's length is that of the run.
bool spans_the_run(const ScheduleSection& schedule) {
  return schedule.kind != "constant" && schedule.kind != "step" && schedule.steps == 0;
}

}  // namespace

std::string RecipeChange::str() const {
  return fmt::format("{}: {}, now {}", key, shown(before), shown(now));
}

std::vector<RecipeChange> recipe_changes(const json& before, const Recipe& now) {
  Recipe copy = now, defaults;
  // As the record has it: paths may be bytes that it cannot keep.
  const json after = parse_json(json_text(json_of(now))), plain = json_of(defaults);
  std::vector<RecipeChange> changes;
  const auto compare = [&](std::string_view key, OnResume meaning) {
    json was = value_at(before, key);
    if (was.is_null()) was = value_at(plain, key);
    json is = value_at(after, key);
    for (json* value : {&was, &is})
      if (value->is_object()) value->erase("auto_reason");  // why `auto` chose it decides nothing
    if (was != is) changes.push_back({std::string(key), meaning, std::move(was), std::move(is)});
  };
  for (const RecipeField& f : recipe_fields(copy))
    if (f.key != "train.steps" || now.train.epochs == 0)  // else they follow, and the data decides
      compare(f.key, f.on_resume);
  compare("precision", OnResume::Fixed);
  return changes;
}

std::vector<RecipeChange> keep_changes(const json& before, const Recipe& now) {
  std::vector<RecipeChange> changes = recipe_changes(before, now);
  std::erase_if(changes, [](const RecipeChange& c) { return !c.key.starts_with("train.keep_"); });
  return changes;
}

std::optional<PrecisionRecipe> settled_precision(const json& before) {
  std::vector<RecipeMistake> mistakes;
  PrecisionRecipe settled = precision_of_json(value_at(before, "precision"), mistakes);
  if (!mistakes.empty() || !settled.is_resolved()) return std::nullopt;
  return settled;
}

void refuse_fixed(const std::vector<RecipeChange>& changes, bool has_checkpoint) {
  UserError e("E0817", "this recipe cannot go on with the run");
  std::vector<std::string_view> reasons;
  for (const RecipeChange& c : changes)
    if (c.meaning == OnResume::Fixed) {
      e.add_line("saw", c.str());
      const std::string_view why =
          has_checkpoint ? why_fixed(c.key)
                         : "the run is recorded as another one; it has nothing to go on from yet";
      if (std::find(reasons.begin(), reasons.end(), why) == reasons.end()) reasons.push_back(why);
    }
  for (const std::string_view why : reasons) e.add_line("because", std::string(why));
  const bool any = !reasons.empty();
  e.add_line("try", kTheSameOrNew);
  if (any) throw e;
}

void refuse_other_model(const std::vector<std::string>& differences) {
  UserError e("E0817", "this recipe cannot go on with the run: it comes to another model");
  for (const std::string& line : differences) e.add_line("saw", line);
  e.add_line("because", "the checkpoint's weights would mean something else");
  e.add_line("try", kTheSameOrNew);
  if (!differences.empty()) throw e;
}

void say_changes(const std::vector<RecipeChange>& changes, const json& before, const Recipe& now) {
  std::string lines;
  for (const RecipeChange& c : changes)
    if (c.meaning == OnResume::Changes) lines += line_of(c.key, c.before, c.now);
  const json steps = value_at(before, "train.steps"), steps_now = now.train.steps;
  if (steps != steps_now && spans_the_run(now.schedule))
    lines += line_of("train.steps", steps, steps_now) +
             fmt::format(" (another length, and so another {} schedule of the learning rate)",
                         now.schedule.kind);
  if (!lines.empty())
    log_warning("from here on the run trains with other settings than before:{}", lines);
}

}  // namespace aloft

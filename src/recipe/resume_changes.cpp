#include "recipe/resume_changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "models/setting_json.h"
#include "precision/recipe_json.h"
#include "recipe/recipe_json.h"

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

std::string shown(const json& value, std::size_t most = 120) {
  std::string text = json_text(value);
  if (text.size() > most) text = text.substr(0, most - 3) + "...";
  return text;
}

constexpr std::string_view kRule = "optimizer.kind";
constexpr std::string_view kOtherCurve =
    "the rate goes on along another curve, from where this step lies";

constexpr std::string_view kOtherAlerts =
    "alerts are raised otherwise from here on; what was written stays";

struct Meaning {
  std::string_view key, text;
};

// What another value means for a run that goes on: of keys that change it, what becomes of it from
// here on; of keys that are refused, why. Those that change nothing have no row.
constexpr Meaning kMeanings[] = {
    {"task.kind", "the weights were learnt for another end"},
    {"data.csv", "the run's place in the data lies in another table"},
    {"data.labelled", "the run's place in the data lies in other texts"},
    {"data.validation_labelled", "validation losses do not compare with those before"},
    {"data.images", "the run's place in the data lies in other images"},
    {"data.labels", "the same images would be of other classes"},
    {"data.validation_images", "validation losses do not compare with those before"},
    {"data.validation_labels", "validation losses do not compare with those before"},
    {"data.shape", "the same numbers would be other images"},
    {"data.scale", "the weights were learnt on features of another size"},
    {"data.outputs", "the weights were learnt to predict other numbers"},
    {"data.text", "the run's place in the data lies in other text"},
    {"data.jsonl", "the run's place in the data lies in other lines"},
    {"data.validation_jsonl", "validation losses do not compare with those before"},
    {"data.train_tokens", "the run's place in the data lies in other tokens"},
    {"data.validation_tokens", "validation losses do not compare with those before"},
    {"data.validation", "what the run has learnt from is validated on, or the other way round"},
    {"data.sampling", "samples are chosen another way: some come again, others later or never"},
    {"precision", "the checkpoint's weights, sums and loss scale are of its precision"},
    {kRule, "the checkpoint's moments are of its update rule"},
    {"optimizer.lr", "the peak of the learning rate; its schedule goes on"},
    {"optimizer.weight_decay", "weights shrink by another share in every update"},
    {"optimizer.maximize", "the run turns round: losses grow that fell"},
    {"optimizer.clip_norm", "gradients are scaled down from another norm on; 0: never"},
    {"optimizer.clip_adaptive", "rows of gradients are scaled down from another size on; 0: never"},
    {"optimizer.clip_value", "elements of gradients are cut at another size; 0: never"},
    {"optimizer.no_decay", "other parameters are spared weight decay"},
    {"optimizer.freeze", "the checkpoint's moments are of other parameters"},
    {"optimizer.rest", "the checkpoint's moments are of other parameters"},
    {"optimizer.master", "the same masters, kept in another form"},
    {"optimizer.states", "the checkpoint's moments are of another format"},
    {"optimizer.rounding", "small steps add up from here on, or are lost"},
    {"optimizer.average", "the checkpoint has no means of the weights, or others"},
    {"optimizer.average_decay", "the means go on, and forget faster or slower"},
    {"optimizer.average_from", "the means go on, and take in new weights with another share"},
    {"optimizer.update",
     "when in a step a parameter moves; by how much stays, where gradients are finite"},
    {"optimizer.groups", "other parameters have a rate or a decay of their own"},
    {"schedule.kind", kOtherCurve},
    {"schedule.steps", kOtherCurve},
    {"schedule.warmup", kOtherCurve},
    {"schedule.final_lr", kOtherCurve},
    {"schedule.step_size", kOtherCurve},
    {"schedule.step_down", kOtherCurve},
    {"schedule.start_factor", kOtherCurve},
    {"schedule.gamma", kOtherCurve},
    {"schedule.decay", kOtherCurve},
    {"schedule.power", kOtherCurve},
    {"schedule.milestones", kOtherCurve},
    {"schedule.cycle", kOtherCurve},
    {"schedule.growth", kOtherCurve},
    {"schedule.div", kOtherCurve},
    {"schedule.final_div", kOtherCurve},
    {"schedule.patience", kOtherCurve},
    {"schedule.cooldown", kOtherCurve},
    {"schedule.threshold", kOtherCurve},
    {"train.batch", "gradients are of more or fewer sequences; the data goes on where it was"},
    {"train.accumulate", "gradients are of more or fewer sequences; the data goes on where it was"},
    {"train.eval_batches", "validation losses do not compare with those before"},
    {"train.eval_every", "validated at other steps; patience and keep_best go by them"},
    {"train.patience", "evaluations without a better loss, past ones too, end the run; 0: never"},
    {"train.on_nonfinite",
     "steps whose numbers are not finite are answered otherwise from here on"},
    {"train.on_spike", "losses far above those before are answered otherwise from here on"},
    {"train.spike_factor", "losses from another height on are spikes"},
    {"train.spike_window", "losses are compared with more or fewer before them"},
    {"train.rollbacks", "so many returns in a row, those before counted, end the run"},
    {"train.checkpoint_every", "checkpoints at other steps"},
    {"train.checkpoint_minutes", "checkpoints at other times"},
    {"train.keep_checkpoints", "so many of the newest stay, the next save removes others; 0: all"},
    {"train.keep_best", "so many of lowest validation loss stay; 0: the best goes like any other"},
    {"train.keep_every", "those of other steps stay for good from here on; 0: none"},
    {"train.sample_every", "samples at other steps; 0: at the end alone"},
    {"train.sample_tokens", "samples of another length; 0: none"},
    {"train.seed", "the samples' order is another: some come again; dropout's draws go on"},
    {"probe.task", "from here on another thing is looked at; what was written stays"},
    {"probe.level", "from here on other values are looked at; what was written stays"},
    {"probe.at", "other steps are looked at from here on; what was written stays"},
    {"probe.every", "other steps are looked at from here on; what was written stays"},
    {"probe.histograms", "exponents are counted or not from here on; what was written stays"},
    {"probe.attention", "from here on with what is inside attentions, or without it"},
    {"probe.list", "other values are written from here on; what was written stays"},
    {"probe.scope", "other values are written from here on; what was written stays"},
    {"probe.data_mode", "other values are written from here on; what was written stays"},
    {"probe.format", "tensors are written in another format from here on; what was written stays"},
    {"probe.summary", "files or checksums of tensors from here on; what was written stays"},
    {"probe.histogram_every", "exponents are counted in other steps from here on"},
    {"monitor.on", "trends are taken or not from here on; what was written stays"},
    {"monitor.every", "other steps are looked at from here on; what was written stays"},
    {"monitor.exponents", "exponents are counted or not from here on; what was written stays"},
    {"monitor.norm_jump.threshold", kOtherAlerts},
    {"monitor.norm_jump.window", kOtherAlerts},
    {"monitor.dead_layer.threshold", kOtherAlerts},
    {"monitor.dead_layer.window", kOtherAlerts},
    {"monitor.saturation.threshold", kOtherAlerts},
    {"monitor.saturation.window", kOtherAlerts},
    {"monitor.nan.threshold", kOtherAlerts},
    {"monitor.nan.window", kOtherAlerts},
    {"monitor.loss_spike.threshold", kOtherAlerts},
    {"monitor.loss_spike.window", kOtherAlerts},
    {"train.skip_passes", "the same step, compiled another way: last bits may differ"},
};

std::string_view meaning_of(std::string_view key) {
  for (const Meaning& m : kMeanings)
    if (m.key == key) return m.text;
  return "";
}

// A line of say_changes, and a second one where it would be too long.
std::string line_of(std::string_view key, const json& before, const json& now,
                    std::string_view meaning) {
  constexpr std::size_t kValue = 32, kLine = 100;
  const std::string change =
      fmt::format("  {}: {} -> {}", key, shown(before, kValue), shown(now, kValue));
  if (meaning.empty()) return "\n" + change;
  const bool fits = change.size() + 2 + meaning.size() <= kLine;
  return fmt::format("\n{}:{}{}", change, fits ? " " : "\n    ", meaning);
}

// Whether the schedule's length is that of the run.
bool spans_the_run(const ScheduleSection& schedule) {
  return spans_total(*scalar::parse_schedule_kind(schedule.kind)) && schedule.steps == 0;
}

// The recipe's [schedule], lr and length as the record has them, all else as it is now; nothing
// where the record does not read as that.
std::optional<Recipe> rates_before(const json& before, const Recipe& now) {
  Recipe was = now;
  for (const RecipeField& f : recipe_fields(was)) {
    const bool decides = f.key.starts_with("schedule.") || f.key == "optimizer.lr";
    if (!decides && f.key != "train.steps") continue;
    const json value = value_at(before, f.key);
    if (value.is_null()) continue;
    const auto take = [&]<class T>(T* target) {
      constexpr bool is_text = std::is_same_v<T, std::string>;
      if constexpr (is_text || std::is_arithmetic_v<T>) {
        if (is_text ? !value.is_string() : !value.is_number()) return false;
        value.get_to(*target);
        return true;
      } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
        const auto is_whole = [](const json& v) { return v.is_number_integer(); };
        if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_whole)) return false;
        value.get_to(*target);
        return true;
      } else {
        return false;
      }
    };
    if (!std::visit(take, f.target)) return std::nullopt;
  }
  if (!scalar::parse_schedule_kind(was.schedule.kind)) return std::nullopt;
  return was;
}

double rate_at(const Recipe& r, std::int64_t applied) {
  return r.optimizer.lr * scalar::schedule_factor(schedule_rule(r), applied);
}

// What the changes come to for the next update's rate; "" where they leave it as it is.
std::string rate_line(const std::vector<RecipeChange>& changes, const json& before,
                      const Recipe& now, std::int64_t applied) {
  const bool touches = std::any_of(changes.begin(), changes.end(), [](const RecipeChange& c) {
    return c.key == "optimizer.lr" || c.key.starts_with("schedule.") || c.key == "train.steps";
  });
  const auto was = touches ? rates_before(before, now) : std::nullopt;
  if (!was) return "";
  try {
    const std::string is = fmt::format("{:.4g}", rate_at(now, applied));
    const std::string would_be = fmt::format("{:.4g}", rate_at(*was, applied));
    if (is == would_be) return "";
    return fmt::format("\n  the rate of the next update: {}, and would have been {}", is, would_be);
  } catch (const UserError&) {  // a record that was edited: a schedule that never ran
    return "";
  }
}

}  // namespace

namespace {

constexpr std::string_view kOptions = "optimizer.";

// Whether the formula was another one while the option had that value.
bool is_other_formula(OptimizerSection optimizer, const std::string& option, const json& before) {
  const optim::OptimizerKind* kind = optim::find_optimizer_kind(optimizer.kind);
  const auto value = models::setting_of_json(before);
  if (!kind || !value || !kind->find(option)) return false;
  const UpdateRule now = optimizer_rule(optimizer);
  SettingValue old = *value;
  if (!need_of(*kind->find(option), old).empty()) return false;
  optimizer.options[option] = old;
  return optimizer_rule(optimizer).name() != now.name();
}

}  // namespace

std::string RecipeChange::str() const {
  return fmt::format("{}: {}, now {}", key, shown(before), shown(now));
}

std::string_view meaning_on_resume(const RecipeField& field) {
  return field.resumed.empty() ? meaning_of(field.key) : field.resumed;
}

std::vector<RecipeChange> recipe_changes(const json& before, const Recipe& now) {
  Recipe copy = now, defaults;
  // As the record has it: paths may be bytes that it cannot keep.
  const json after = parse_json(json_text(json_of(now))), plain = json_of(defaults);
  std::vector<RecipeChange> changes;
  const auto compare = [&](std::string_view key, OnResume meaning, std::string_view text) {
    json was = value_at(before, key);
    if (was.is_null()) was = value_at(plain, key);
    json is = value_at(after, key);
    for (json* value : {&was, &is})
      if (value->is_object()) value->erase("auto_reason");  // why `auto` chose it decides nothing
    if (was != is)
      changes.push_back({std::string(key), meaning, std::move(was), std::move(is), text});
  };
  // A momentum that comes or goes is another formula.
  const auto is_other_rule = [&](const RecipeChange& c) {
    return c.key.starts_with(kOptions) &&
           is_other_formula(now.optimizer, c.key.substr(kOptions.size()), c.before);
  };
  for (const RecipeField& f : recipe_fields(copy))
    if (f.key != "train.steps" || now.train.epochs == 0)  // else they follow, and the data decides
      compare(f.key, f.on_resume, meaning_on_resume(f));
  compare("precision", OnResume::Fixed, meaning_of("precision"));
  for (RecipeChange& c : changes)
    if (is_other_rule(c)) c.meaning = OnResume::Fixed, c.text = meaning_of(kRule);
  const json plateau = name_of(scalar::ScheduleKind::Plateau);
  for (RecipeChange& c : changes)
    if (c.key == "schedule.kind" && (c.before == plateau || c.now == plateau))
      c.meaning = OnResume::Fixed, c.text = "a plateau is kept in the checkpoint, others are not";
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
          has_checkpoint ? c.text
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

void say_other_data(std::string_view headline, const std::vector<RecipeChange>& changes) {
  std::string lines;
  for (const RecipeChange& c : changes)
    if (c.meaning == OnResume::Data) lines += line_of(c.key, c.before, c.now, c.text);
  log_warning("{}: going on with the new data, as --force says{}{}", headline,
              lines.empty() ? "" : ":", lines);
}

void say_changes(const std::vector<RecipeChange>& changes, const json& before, const Recipe& now,
                 std::optional<StandingRun> stands) {
  // A run that begins anew has nothing that would go on otherwise.
  const auto lines_of = [&](OnResume which) {
    std::string text;
    for (const RecipeChange& c : changes)
      if (c.meaning == which) text += line_of(c.key, c.before, c.now, stands ? c.text : "");
    return text;
  };
  const std::string course = lines_of(OnResume::Course);
  std::string lines = lines_of(OnResume::Changes);
  const json steps = value_at(before, "train.steps"), steps_now = now.train.steps;
  if (steps != steps_now && spans_the_run(now.schedule))
    lines += line_of("train.steps", steps, steps_now,
                     fmt::format("another length, and so another {} schedule of the learning rate",
                                 now.schedule.kind));
  const std::string begin = stands ? fmt::format("from step {} on the run", stands->step + 1)
                                   : "the run begins anew, and";
  if (!lines.empty())
    log_warning("{} trains with other settings than before:{}{}", begin, lines,
                stands ? rate_line(changes, before, now, stands->applied) : "");
  if (!course.empty())
    log_warning("{} is validated, saved or sampled by other rules than before:{}", begin, course);
}

}  // namespace aloft

#include "train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/amp.h"
#include "frontend/description.h"
#include "frontend/layer_names.h"
#include "frontend/prepare_frozen.h"
#include "frontend/random.h"
#include "passes/pass.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"
#include "train/first_weights.h"

namespace aloft {

namespace {
// The keys that hold name patterns, and where each was set.
std::string places_of_patterns(const Recipe& recipe) {
  std::string out;
  for (const char* key :
       {"optimizer.no_decay", "optimizer.groups", "optimizer.freeze", "precision.allow_ops",
        "precision.deny_ops", "precision.allow_params", "precision.deny_params",
        "precision.fp32_layers", "precision.bf16_layers", "precision.fp16_layers"})
    if (const auto it = recipe.origin.find(key); it != recipe.origin.end())
      out += (out.empty() ? "" : ", ") + it->first + " (" + it->second + ")";
  return out;
}

// What to do about a choice that the optimizer does not go with.
void add_choice(UserError& e, const Session& s) {
  const PrecisionRecipe& precision = s.recipe.precision;
  if (precision.auto_reason.empty()) return;
  const auto it = s.choices.all().find(std::string(kPrecisionChoice));
  const bool is_of_layers = it != s.choices.all().end() && !it->second.figures.empty();
  e.add_line("because",
             fmt::format("`{}` chose {} by measurement: {}", is_of_layers ? "adaptive" : "auto",
                         name_of(precision.level), precision.auto_reason));
  if (is_of_layers && precision.level == Level::O0)
    e.add_line("try", "a larger precision.error_budget, which leaves layers to bf16");
}

// The user's own patterns, before minutes are spent on a measurement and lists are added to them.
void check_own_patterns(const Recipe& recipe, const models::ModelSpec& spec) {
  if (recipe.precision.is_resolved()) return;
  const OnlyDescribed no_values;
  Session s;
  s.recipe = recipe;
  s.recipe.precision = resolve_auto(recipe.precision, PrecisionRecipe{}, "");
  s.task = task_kind(recipe).make(spec);
  try {
    amp::prepare(s.model(), s.recipe.precision);
  } catch (UserError& e) {
    if (e.code() == "E0809") e.add_line("at", places_of_patterns(recipe));
    throw;
  }
}

// Folders of Hugging Face may call a parameter by a prefix that it does not have here: a pattern of
// such names, "model.layers.0.*", means the same parameters.
std::string own_pattern(const std::string& pattern, const Session& s) {
  const std::string_view prefix = s.spec.family->published.prefix;
  const auto matches_some = [&](std::string_view asked) {
    return std::ranges::any_of(s.model().parameters(), [&](const VariablePtr& p) {
      return glob_match(asked, p->name.str());
    });
  };
  if (prefix.empty() || !pattern.starts_with(prefix) || matches_some(pattern)) return pattern;
  const std::string without = pattern.substr(prefix.size());
  return matches_some(without) ? without : pattern;
}

void make_model(Session& s) {
  s.task = task_kind(s.recipe).make(s.spec);
  try {
    for (const std::string& pattern : s.recipe.optimizer.freeze)
      s.model().requires_grad(false, own_pattern(pattern, s));
    s.optimizer = std::make_unique<Optimizer>(
        amp::prepare_with_frozen(s.model(), optimizer_spec(s.recipe), s.recipe.precision));
  } catch (UserError& e) {
    const std::string at = places_of_patterns(s.recipe);
    if (e.code() == "E0809" && !at.empty()) e.add_line("at", at);
    if (e.code() == "E0815") add_choice(e, s);
    throw;
  }
  s.optimizer->set_accumulation(static_cast<int>(s.recipe.train.accumulate));
}
}  // namespace

PrecisionRecipe asked_precision(const Recipe& recipe) {
  PrecisionRecipe asked = recipe.precision;
  const bool needs_bf16 = recipe.optimizer.update == "early" || recipe.optimizer.master == "split";
  if (asked.layers_are_auto && asked.low_is_auto && needs_bf16) {
    asked.low = DType::BF16;
    asked.low_is_auto = false;
  }
  return asked;
}

void check_measured_layers(const Choices& choices, const Recipe& recipe,
                           const SettingValues& of_data) {
  const auto it = choices.all().find(std::string(kPrecisionChoice));
  if (it == choices.all().end() || it->second.figures.empty()) return;
  const Figures& figures = it->second.figures;
  const OnlyDescribed no_values;
  const auto task = task_kind(recipe).make(model_spec(recipe, of_data));
  const std::vector<std::string> layers = layer_names(task->model());
  std::vector<std::string> gone, unmeasured;
  for (const auto& [layer, errors] : figures)
    if (std::ranges::find(layers, layer) == layers.end()) gone.push_back(layer);
  for (const VariablePtr& p : task->model().parameters()) {
    const std::string layer(listed_layer(layer_of_parameter(p->name.str())));
    if (!figures.contains(layer) && std::ranges::find(unmeasured, layer) == unmeasured.end())
      unmeasured.push_back(layer);
  }
  if (gone.empty() && unmeasured.empty()) return;
  UserError e("E0829", "the choices were made for a model of other layers");
  if (!gone.empty()) e.add_line("saw", "measured, and not in this model: " + some_of(gone));
  if (!unmeasured.empty()) e.add_line("saw", "in this model, not measured: " + some_of(unmeasured));
  e.add_line("need", "the choices of a run whose model has the same layers");
  e.add_line("try", "leave --choices out: the run then measures its own layers");
  throw e;
}

Session open_session(const Recipe& recipe, const SettingValues& of_data,
                     const std::function<MeasuredRates()>& measure, Choices choices,
                     const Batches& batches, const MeasuredPart& measured) {
  Session s;
  s.choices = std::move(choices);
  s.recipe = recipe;
  s.spec = model_spec(recipe, of_data);
  s.columns = task_kind(recipe).columns(s.spec, of_data);
  if (recipe.train.threads > 0) host_threads().set_count(static_cast<int>(recipe.train.threads));
  check_own_patterns(recipe, s.spec);
  Measuring measuring;
  if (measure) measuring.rates = [&] { return s.rates.emplace(measure()); };
  if (batches)
    measuring.layers = [&](std::span<const DType> low) {
      return measure_layer_errors(recipe, s.spec, s.columns, batches, low, measured);
    };
  s.recipe.precision = settle_precision(asked_precision(recipe), s.choices, measuring,
                                        current_device().features().capability);
  const OnlyDescribed scope;
  make_model(s);
  return s;
}

void make_values(Session& s, bool takes_others) {
  manual_seed(s.recipe.train.seed);
  Session twin;
  twin.recipe = s.recipe;
  twin.spec = s.spec;
  make_model(twin);
  take_values(variables_of(s.model(), *s.optimizer), variables_of(twin.model(), *twin.optimizer));
  if (takes_others) return;
  const std::vector<std::string> fresh = load_first_weights(s.recipe, s.model());
  if (!fresh.empty())
    log_warning("{} has no {}: they begin as those of a new model", s.recipe.model.init,
                join(fresh, ", "));
}

std::unique_ptr<Runner> make_runner(Session& s) {
  const TrainSection& train = s.recipe.train;
  PipelineOptions passes{.skip = train.skip_passes};
  if (train.recompute == "elementwise") passes.also.emplace_back(recompute_elementwise.name);
  const RunnerOptions o{train.batch,     s.columns,          static_cast<int>(train.threads),
                        passes,          s.choices.values(), s.recipe.probe,
                        s.recipe.monitor};
  // What there is to look at is known of a program before any step.
  const bool is_eager = train.mode == "eager" && s.recipe.probe.task != "structure";
  return is_eager ? eager_runner(*s.task, *s.optimizer, o) : graph_runner(*s.task, *s.optimizer, o);
}

}  // namespace aloft

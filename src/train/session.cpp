#include "train/session.h"

#include "base/error.h"
#include "frontend/amp.h"
#include "frontend/description.h"
#include "frontend/random.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"

namespace aloft {

namespace {
// The keys that hold name patterns, and where each was set.
std::string places_of_patterns(const Recipe& recipe) {
  std::string out;
  for (const char* key :
       {"optimizer.no_decay", "optimizer.groups", "precision.allow_ops", "precision.deny_ops",
        "precision.allow_params", "precision.deny_params", "precision.fp32_layers",
        "precision.bf16_layers", "precision.fp16_layers"})
    if (const auto it = recipe.origin.find(key); it != recipe.origin.end())
      out += (out.empty() ? "" : ", ") + it->first + " (" + it->second + ")";
  return out;
}

void make_model(Session& s) {
  s.task = task_kind(s.recipe).make(s.spec);
  try {
    s.optimizer = std::make_unique<Optimizer>(
        amp::prepare(s.model(), optimizer_spec(s.recipe), s.recipe.precision));
  } catch (UserError& e) {
    if (e.code() == "E0809") e.add_line("at", places_of_patterns(s.recipe));
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

Session open_session(const Recipe& recipe, const SettingValues& of_data,
                     const std::function<MeasuredRates()>& measure, Choices choices,
                     const Batches& batches) {
  Session s;
  s.choices = std::move(choices);
  s.recipe = recipe;
  s.spec = model_spec(recipe, of_data);
  s.columns = task_kind(recipe).columns(s.spec, of_data);
  if (recipe.train.threads > 0) host_threads().set_count(static_cast<int>(recipe.train.threads));
  Measuring measuring;
  if (measure) measuring.rates = [&] { return s.rates.emplace(measure()); };
  if (batches)
    measuring.layers = [&](std::span<const DType> low) {
      return measure_layer_errors(recipe, s.spec, s.columns, batches, low);
    };
  s.recipe.precision = settle_precision(asked_precision(recipe), s.choices, measuring,
                                        current_device().features().capability);
  const OnlyDescribed scope;
  make_model(s);
  return s;
}

void make_values(Session& s) {
  manual_seed(s.recipe.train.seed);
  Session twin;
  twin.recipe = s.recipe;
  twin.spec = s.spec;
  make_model(twin);
  take_values(variables_of(s.model(), *s.optimizer), variables_of(twin.model(), *twin.optimizer));
}

std::unique_ptr<Runner> make_runner(Session& s) {
  const TrainSection& train = s.recipe.train;
  const RunnerOptions o{train.batch,         s.columns,          static_cast<int>(train.threads),
                        {train.skip_passes}, s.choices.values(), s.recipe.probe};
  return train.mode == "eager" ? eager_runner(*s.task, *s.optimizer, o)
                               : graph_runner(*s.task, *s.optimizer, o);
}

}  // namespace aloft

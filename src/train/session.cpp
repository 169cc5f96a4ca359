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
  for (const char* key : {"optimizer.no_decay", "optimizer.groups", "precision.allow_ops",
                          "precision.deny_ops", "precision.allow_params", "precision.deny_params"})
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

Session open_session(const Recipe& recipe, const SettingValues& of_data,
                     const std::function<MeasuredRates()>& measure, Choices choices) {
  Session s;
  s.choices = std::move(choices);
  s.recipe = recipe;
  s.spec = model_spec(recipe, of_data);
  s.columns = task_kind(recipe).columns(s.spec, of_data);
  if (recipe.train.threads > 0) host_threads().set_count(static_cast<int>(recipe.train.threads));
  std::function<MeasuredRates()> noted;
  if (measure) noted = [&] { return s.rates.emplace(measure()); };
  s.recipe.precision =
      settle_precision(recipe.precision, s.choices, noted, current_device().features().capability);
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
  const RunnerOptions o{train.batch,
                        s.columns,
                        static_cast<int>(train.threads),
                        {train.skip_passes},
                        s.choices.values()};
  return train.mode == "eager" ? eager_runner(*s.task, *s.optimizer, o)
                               : graph_runner(*s.task, *s.optimizer, o);
}

}  // namespace aloft

#include "train/session.h"

#include <omp.h>

#include "frontend/amp.h"
#include "frontend/description.h"
#include "frontend/random.h"

namespace aloft {

namespace {
void make_model(Session& s) {
  s.model = std::make_unique<models::Gpt2>(s.config);
  s.optimizer = std::make_unique<Optimizer>(
      amp::prepare(*s.model, optimizer_spec(s.recipe), s.recipe.precision));
  s.optimizer->set_accumulation(static_cast<int>(s.recipe.train.accumulate));
}
}  // namespace

Session open_session(const Recipe& recipe, std::int64_t tokenizer_vocab,
                     const std::function<MeasuredRates()>& measure) {
  Session s;
  s.recipe = recipe;
  s.config = model_config(recipe, tokenizer_vocab);
  if (recipe.train.threads > 0) omp_set_num_threads(static_cast<int>(recipe.train.threads));
  std::function<MeasuredRates()> noted;
  if (measure) noted = [&] { return s.rates.emplace(measure()); };
  s.recipe.precision = settle_precision(recipe.precision, noted);
  const OnlyDescribed scope;
  make_model(s);
  return s;
}

void make_values(Session& s) {
  manual_seed(s.recipe.train.seed);
  Session twin;
  twin.recipe = s.recipe;
  twin.config = s.config;
  make_model(twin);
  take_values(variables_of(*s.model, *s.optimizer), variables_of(*twin.model, *twin.optimizer));
}

std::unique_ptr<Runner> make_runner(Session& s) {
  const TrainSection& train = s.recipe.train;
  const RunnerOptions o{
      train.batch, s.config.context, static_cast<int>(train.threads), {train.skip_passes}};
  return train.mode == "eager" ? eager_runner(*s.model, *s.optimizer, o)
                               : graph_runner(*s.model, *s.optimizer, o);
}

}  // namespace aloft

#include "train/session.h"

#include <omp.h>

#include "frontend/amp.h"
#include "frontend/random.h"

namespace aloft {

Session open_session(const Recipe& recipe, std::int64_t tokenizer_vocab,
                     const std::function<MeasuredRates()>& measure) {
  Session s;
  s.recipe = recipe;
  s.config = model_config(recipe, tokenizer_vocab);
  if (recipe.train.threads > 0) omp_set_num_threads(static_cast<int>(recipe.train.threads));
  s.recipe.precision = settle_precision(recipe.precision, measure);
  manual_seed(recipe.train.seed);
  s.model = std::make_unique<models::Gpt2>(s.config);
  s.optimizer = std::make_unique<Optimizer>(
      amp::prepare(*s.model, optimizer_spec(s.recipe), s.recipe.precision));
  s.optimizer->set_accumulation(static_cast<int>(s.recipe.train.accumulate));
  return s;
}

std::unique_ptr<Runner> make_runner(Session& s) {
  const TrainSection& train = s.recipe.train;
  const RunnerOptions o{
      train.batch, s.config.context, static_cast<int>(train.threads), {train.skip_passes}};
  return train.mode == "eager" ? eager_runner(*s.model, *s.optimizer, o)
                               : graph_runner(*s.model, *s.optimizer, o);
}

}  // namespace aloft

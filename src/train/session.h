// What a recipe becomes before anything runs: a settled precision, a model and its optimizer, and
// the programs compiled from them. The training loop and every verb that explains a recipe start
// here, so that what is explained is what is run.
#pragma once

#include <memory>

#include "frontend/optimizer.h"
#include "models/gpt2.h"
#include "train/recipe.h"
#include "train/runner.h"
#include "train/trainer.h"

namespace aloft {

struct Session {
  Recipe recipe;  // precision settled
  models::Gpt2Config config;
  std::unique_ptr<models::Gpt2> model;
  std::unique_ptr<Optimizer> optimizer;
};

// `tokenizer_vocab`: pieces of the recipe's tokenizer, 0 where it has none. Sets the number of
// OpenMP threads and the seed as the recipe says. UserErrors of recipe.h and amp.h.
Session open_session(const Recipe& recipe, std::int64_t tokenizer_vocab,
                     const std::function<MeasuredRates()>& measure);

// The runner of train.mode.
std::unique_ptr<Runner> make_runner(Session& session);

}  // namespace aloft

// What a recipe becomes before anything runs: a settled precision, a model and its optimizer, and
// the programs compiled from them. The training loop and every verb that explains a recipe start
// here, so that what is explained is what is run.
//
// Description first, then the plan, then values:
//   Session s = open_session(...);  const auto runner = make_runner(s);   no weight is made yet
//   need_memory_for(runner->programs()->plan());  make_values(s);  runner->start();
#pragma once

#include <memory>
#include <optional>

#include "frontend/optimizer.h"
#include "models/model_spec.h"
#include "recipe/recipe.h"
#include "recipe/settle_precision.h"
#include "tasks/task.h"
#include "train/layer_errors.h"
#include "train/runner.h"

namespace aloft {

struct Session {
  Recipe recipe;                       // precision settled
  std::optional<MeasuredRates> rates;  // what was measured for that
  Choices choices;                     // made by measurement, here or as they were recorded
  models::ModelSpec spec;              // with what the data says
  std::vector<Column> columns;         // of an example
  // Described only, until make_values().
  std::unique_ptr<Task> task;
  std::unique_ptr<Optimizer> optimizer;

  nn::Layer& model() const { return task->model(); }
};

// The recipe's precision, before anything is chosen by measurement: where `adaptive` goes with an
// early update, which cannot skip the steps of a loss scale, or with split masters, it is of bf16.
PrecisionRecipe asked_precision(const Recipe& recipe);

// Whether a new run of the recipe may take what another chose for each of its layers: UserError
// E0829 where that run's model had other layers. `of_data`: what the recipe's data says.
void check_measured_layers(const Choices& choices, const Recipe& recipe,
                           const SettingValues& of_data);

// `of_data`: what the recipe's data says (model_spec()). Sets the number of OpenMP threads as the
// recipe says. What `choices` has is not measured; `adaptive` precision looks at `batches`, or
// the `measured` part of them.
// UserErrors of recipe.h, amp.h and settle_precision().
Session open_session(const Recipe& recipe, const SettingValues& of_data,
                     const std::function<MeasuredRates()>& measure, Choices choices = {},
                     const Batches& batches = {}, const MeasuredPart& measured = {});

// The runner of train.mode, with its programs planned where it has some.
std::unique_ptr<Runner> make_runner(Session& session);

// Sets the recipe's seed, and makes weights and optimizer state as it begins them: drawn, or those
// of model.init. A run that goes on (`takes_others`) takes other weights right behind it, and that
// folder's are not read. EnvironmentError E0401; DataErrors of models/huggingface.h.
void make_values(Session& session, bool takes_others = false);

}  // namespace aloft

// The training loop, which fills a run directory (run_directory.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/best_validation.h"
#include "checkpoint/rollback.h"
#include "observe/profile/rates.h"
#include "plan/choices.h"
#include "recipe/recipe.h"
#include "recipe/settle_precision.h"
#include "run/listener.h"
#include "run/validation_loss.h"

namespace aloft {

// How a recipe is run.
struct TrainOptions {
  Path out;             // run directory
  bool resume = false;  // on from its newest healthy checkpoint, where there is one
  bool force = false;   // resume although the data is another one, or all checkpoints are gone
  bool quiet = false;   // no banner, no progress, no validation losses
  bool shows_progress = false;  // ... but on a terminal the line that says how far it is
  // ... to this step, behind which a listener ends the run; 0: to the recipe's last
  std::int64_t shown_steps = 0;
  // The steps are made to be looked at, and for no model: none is evaluated but where the rate goes
  // by it, sampled or saved but where the run may go back, and nothing is advised on training.
  bool only_steps = false;
  Path probe_out;       // where the probe writes its folders; empty: probe/ in the run directory
  std::string machine;  // description for run.json
  // How fast products are, asked at most once, where precision is `auto`; without it that is O0, or
  // bf16 where the level is given.
  std::function<MeasuredRates()> measure;
  // What the device can do, asked once at the end, where [profile] times steps; without it their
  // work is held against nothing.
  std::function<profile::Rates()> rates;
  // For a new run of `auto` precision: recorded by another, and not to be measured again.
  Choices choices;
  std::function<void(const Path& run)> report;  // writes report.html when the run ends
  std::vector<Listener*> listeners;             // of the program: they must outlive the run
};

// What a run came to.
struct TrainResult {
  ExitCode exit = ExitCode::Ok;              // or Interrupted, by a signal
  std::int64_t steps = 0;                    // made by this call
  std::int64_t last_step = 0;                // of the whole run, resumed ones included
  std::int64_t skipped = 0;                  // of the whole run: steps that changed no weight
  double first_loss = 0;                     // of this call's steps
  std::optional<double> last_loss;           // of the whole run's; nothing where it has made none
  std::optional<double> val_loss;            // the newest
  std::optional<BestValidation> best;        // of the whole run
  std::optional<ValidationLoss> validation;  // the same, with what else was measured
  std::vector<Rollback> rollbacks;           // of the whole run: returns to a checkpoint
  double median_step_s = 0, tokens_per_s = 0, compile_s = 0;  // seconds; at the median step
  std::uint64_t planned_peak_bytes = 0;                       // 0: nothing is planned (eager)
  Path checkpoint;                                            // the newest
  std::string sample;   // the newest text that the model wrote
  std::string profile;  // where the time goes, as a table; empty: no step was timed
};

// Runs a recipe, on the device that it names or else on this thread's, from the start, or on from
// its newest healthy checkpoint, until its last step, until a listener stops it (train.patience is
// one), or until SIGINT, SIGTERM or SIGHUP (the step is finished, a checkpoint saved, exit
// Interrupted; before the first step Interrupted is thrown). Whatever is thrown on the way, what is
// healthy is saved first; what is thrown of the last sample or of the report comes behind the end,
// and run.json says finished. DivergedError E0810 when the loss scaler gives up, E0822 when the
// run's end is worth nothing (of steps alone E0884), E0834 where train.on_nonfinite ends it, E0835
// where it cannot go back or going back does not help; the errors of data, recipe, files and run
// directory.
TrainResult run_training(const Recipe& recipe, const TrainOptions& options);

}  // namespace aloft

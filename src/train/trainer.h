// The training loop, which fills a run directory (run_directory.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/pack.h"
#include "plan/choices.h"
#include "train/best_validation.h"
#include "train/recipe.h"
#include "types/capability.h"

namespace aloft {

// What a measurement found for `auto` precision: GFLOP/s of a large product.
struct MeasuredRates {
  double f32_gflops = 0, bf16_gflops = 0;
  std::string source = {};  // "measured now", "as measured before (FILE)"
};
// "f32 410, bf16 1210 GFLOP/s (2.95x), measured now"
std::string describe(const MeasuredRates& rates);

struct TrainOptions {
  Path out;  // run directory
  bool resume = false;
  bool force = false;  // resume although the data is another one, or all checkpoints are gone
  bool quiet = false;
  std::string machine;                          // description for run.json
  std::function<MeasuredRates()> measure;       // asked at most once
  Choices choices;  // for a new run: recorded by another, and not to be measured again
  std::function<void(const Path& run)> report;  // writes report.html when the run ends
};

struct TrainResult {
  ExitCode exit = ExitCode::Ok;
  std::int64_t steps = 0;      // made by this call
  std::int64_t last_step = 0;  // of the whole run, resumed ones included
  std::int64_t skipped = 0;
  double first_loss = 0;                // of this call's steps
  std::optional<double> last_loss;      // of the whole run's; nothing where it has made none
  std::optional<double> val_loss;       // the newest
  std::optional<BestValidation> best;   // of the whole run
  std::optional<double> bytes_a_token;  // of the validation part: bytes_a_validation_token()
  double median_step_s = 0, tokens_per_s = 0, compile_s = 0;
  std::uint64_t planned_peak_bytes = 0;
  Path checkpoint;
  std::string sample;
};

// Runs a recipe from the start, or on from its newest healthy checkpoint, until its last step,
// until its patience is over, or until SIGINT, SIGTERM or SIGHUP (the step is finished, a
// checkpoint saved, exit Interrupted; before the first step Interrupted is thrown). Whatever is
// thrown on the way, what is healthy is saved first; what is thrown of the last sample or of the
// report comes behind the end, and run.json says finished. DivergedError E0810 when the loss scaler
// gives up, E0822 when the run's end is worth nothing; the errors of data, recipe, files and run
// directory.
TrainResult run_training(const Recipe& recipe, const TrainOptions& options);

// Replaces `auto` by what `choices` records, or else by the better measured type, which they then
// record, with the reason; the same recipe otherwise. Warns where a low type was asked for that
// this machine multiplies more slowly than fp32. UserError E0829 where what is recorded is no
// precision, or of a type that is not there (`here`).
PrecisionRecipe settle_precision(const PrecisionRecipe& recipe, Choices& choices,
                                 const std::function<MeasuredRates()>& measure,
                                 const Capability& here = {});
// The name of that choice, and its value for a precision that is settled: level and type.
inline constexpr std::string_view kPrecisionChoice = "precision";
MeasuredChoice precision_choice(const PrecisionRecipe& settled);

// Where packed data lies unless a recipe says otherwise: XDG_CACHE_HOME or ~/.cache, /aloft.
Path default_cache();

// Opens the recipe's data: its text, or the token files that it names instead, and says which files
// of it are odd (say_odd_files). DataError E0523 where a tokenizer is given that did not make the
// tokens; Interrupted (interrupt.h), and what was half made is removed.
Dataset open_data(const Recipe& recipe, bool quiet);
// Says which files of a folder or glob were left out (where `quiet`, only those that cannot be
// opened), and which were taken because they were named although they may be no text.
void say_odd_files(const Dataset& data, bool quiet);
// The same of a text, where the cache holds it already: nothing is made or said. By its signature,
// without a look at the text.
std::optional<Dataset> cached_data(const Recipe& recipe);
std::optional<Dataset> cached_data(const Recipe& recipe, std::uint64_t signature);
// The files of the recipe's text as they are now; none where it names token files instead.
// DataError of data/corpus.h.
std::vector<CorpusFile> files_of_text(const Recipe& recipe);
// Ids that the model must have at least; 0 where the recipe's model.vocab alone can say it.
// UserError E0722 where nothing does.
std::int64_t vocabulary_of(const Recipe& recipe, const Dataset& data);

}  // namespace aloft

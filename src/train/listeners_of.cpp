#include "train/listeners_of.h"

#include "base/terminal.h"
#include "train/abandoned_steps.h"
#include "train/announcements.h"
#include "train/best_checkpoint.h"
#include "train/early_stopping.h"
#include "train/metrics.h"
#include "train/probe_calls.h"
#include "train/probe_files.h"
#include "train/probe_overflow.h"
#include "train/profile_file.h"
#include "train/progress.h"
#include "train/report_at_end.h"
#include "train/tensorboard_events.h"
#include "train/text_samples.h"

namespace aloft {

// What a step held is there before the step is in the record, and that before it is shown; a
// validation loss is said before it is recorded. The report reads what the others have written.
std::vector<std::unique_ptr<Listener>> listeners_of(const RunParts& run) {
  const TrainSection& train = run.session.recipe.train;
  std::vector<std::unique_ptr<Listener>> all;
  const auto add = [&]<class L>(std::unique_ptr<L> listener) {
    all.push_back(std::move(listener));
  };
  add(std::make_unique<Announcements>(
      run.session, run.data, recorded_device(run.directory.found_record()), run.options.quiet));
  add(std::make_unique<AbandonedSteps>());
  const std::string& probed = run.session.recipe.probe.task;
  if (probed == "statistics" || probed == "tensor" || probed == "structure")
    add(std::make_unique<ProbeFiles>(run.session, run.runner, run.options.probe_out));
  if (probed == "overflow")
    add(std::make_unique<ProbeOverflow>(run.session, run.runner, run.options.probe_out));
  if (probed == "acc_check")
    add(std::make_unique<ProbeCalls>(run.session, run.runner, run.options.probe_out));
  add(std::make_unique<Metrics>());
  add(std::make_unique<TensorBoardEvents>());
  const bool is_shown =
      !run.options.quiet || (run.options.shows_progress && is_terminal(Output::Err));
  add(std::make_unique<Progress>(run.session, !is_shown, run.options.shown_steps));
  if (run.session.recipe.profile.steps > 0)
    add(std::make_unique<ProfileFile>(run.session, run.runner, run.options.rates,
                                      run.result.profile));
  if (train.keep_best > 0) add(std::make_unique<BestCheckpoint>());
  if (train.patience > 0) add(std::make_unique<EarlyStopping>(train.patience));
  if (train.sample_tokens > 0 && !run.options.only_steps && run.data.tokenizer() &&
      run.session.task->writer())
    add(std::make_unique<TextSamples>(run.session, run.data, run.directory, run.result.sample));
  if (run.options.report) add(std::make_unique<ReportAtEnd>(run.options.report));
  return all;
}

}  // namespace aloft

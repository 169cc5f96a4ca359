#include "train/probe_overflow.h"

#include <utility>

#include "frontend/eager_taps.h"
#include "frontend/programs.h"

namespace aloft {

ProbeOverflow::ProbeOverflow(const Session& session, const std::unique_ptr<Runner>& runner,
                             Path folder)
    : session_(session), runner_(runner), folder_(std::move(folder)) {}

void ProbeOverflow::run_begun(const RunBegun& e, Control&) {
  if (folder_.empty()) folder_ = e.folder / "probe";
  const Recipe& recipe = session_.recipe;
  if (const Programs* programs = runner_->programs()) {
    const std::string name = Runner::program_of(Look::Statistics, recipe.probe);
    finder_.emplace(*programs->plan().find(name));
    all_ = programs->output<double>(name, kAllStatistics);
  }
  file_.emplace(folder_, print_precision(recipe.precision));
  if (e.step > 0) file_->take_up(recipe.probe, e.step);
  file_->write();
}

nlohmann::ordered_json ProbeOverflow::first_of_step() const {
  if (const EagerTaps* taps = runner_->taps()) return first_overflow(*taps);
  const auto read = all_.read();
  return finder_->first({read.data(), read.size()});
}

void ProbeOverflow::step_done(const StepDone& e, Control&) {
  const std::int64_t step = e.step - 1;  // of a run the first is 1, of a dump 0
  if (look_at(session_.recipe.probe, step) == Look::Nothing) return;
  file_->add(step, first_of_step(), {{"skipped", e.skipped}, {"loss_scale", e.loss_scale}});
}

// Steps behind the checkpoint are made once more, with other data.
void ProbeOverflow::rolled_back(const RolledBack& e) { file_->undo(e.step); }

// Who goes on from the checkpoint finds all that was found, and counted, up to there.
void ProbeOverflow::checkpoint_begun(const CheckpointBegun&) { file_->write(true); }

void ProbeOverflow::steps_over(const StepsOver&) {
  if (file_) file_->finish();
}

}  // namespace aloft

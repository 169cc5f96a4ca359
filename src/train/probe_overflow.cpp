#include "train/probe_overflow.h"

#include "base/file.h"
#include "base/log.h"
#include "frontend/programs.h"

namespace aloft {

ProbeOverflow::ProbeOverflow(const Session& session, const std::unique_ptr<Runner>& runner,
                             Path folder)
    : session_(session), runner_(runner), folder_(std::move(folder)) {}

void ProbeOverflow::run_begun(const RunBegun& e, Control&) {
  if (folder_.empty()) folder_ = e.folder / "probe";
  const std::string name = Runner::program_of(Look::Statistics, session_.recipe.probe);
  const Programs& programs = *runner_->programs();
  finder_.emplace(*programs.plan().find(name));
  all_ = programs.output<double>(name, kAllStatistics);
  found_ = {{"task", "overflow"},
            {"precision", print_precision(session_.recipe.precision)},
            {"steps", 0},
            {"found", nlohmann::ordered_json::array()}};
  make_folder(folder_);
  write();
}

void ProbeOverflow::step_done(const StepDone& e, Control&) {
  const std::int64_t step = e.step - 1;  // of a run the first is 1, of a dump 0
  if (look_at(session_.recipe.probe, step) == Look::Nothing) return;
  found_["steps"] = found_["steps"].get<std::int64_t>() + 1;
  const auto read = all_.read();
  nlohmann::ordered_json first = finder_->first({read.data(), read.size()});
  if (!first.is_null()) {
    log_info("step {}: {}", step, probe::overflow_text(first));
    found_["found"].push_back({{"step", step},
                               {"skipped", e.skipped},
                               {"loss_scale", e.loss_scale},
                               {"first", std::move(first)}});
  }
  write();
}

// Whole or not there, whatever ends the program; a step does not wait for the disk.
void ProbeOverflow::write() const {
  AtomicFile file(folder_ / "overflow.json");
  file.write(found_.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  file.commit_unflushed();
}

}  // namespace aloft

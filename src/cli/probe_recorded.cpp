#include "cli/probe_recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/made_folder.h"
#include "cli/probe_answer.h"
#include "cli/probe_overflows.h"
#include "cli/work_progress.h"
#include "observe/probe/overflow.h"
#include "run/run_directory.h"
#include "runtime/current_device.h"
#include "tasks/loss_text.h"
#include "train/probe_calls.h"
#include "train/probe_files.h"
#include "train/probe_overflow.h"
#include "train/recorded_run.h"
#include "train/written_file.h"

namespace aloft::cli {

namespace {

void refuse_what_is_of_recipes(const ProbeWords& o) {
  std::string word = word_of_recipe(o);
  if (!o.precision.empty()) word = "--precision";
  if (o.steps) word = "--steps " + std::to_string(*o.steps);
  if (word.empty()) return;
  throw UserError("E0700", "steps of a run are made again as they were")
      .at(o.recipe.path)
      .saw(word)
      .need(
          "--at N --out DIR; of the other options --task, --level, --config, --threads, --device, "
          "--quiet, --json, and --set of keys of [probe]")
      .advice("with other settings its recipe is made anew: aloft probe run RECIPE.toml --out DIR");
}

// Which steps are looked at, the earliest first.
std::vector<std::int64_t> steps_of(const ProbeWords& o, const ProbeSection& probe) {
  std::vector<std::int64_t> at = probe.at;
  std::ranges::sort(at);
  if (probe.task == "structure" && at.empty()) at = {0};  // none is made
  if (at.empty())
    throw UserError("E0700", "which step of the run is made again is not said")
        .at(o.recipe.path)
        .need("--at N, counted from 0: in metrics.jsonl it is \"step\": N + 1")
        .advice("--at 0, or several: --at 0,4-6");
  return at;
}

// What a run has for its listeners, which here are one.
std::unique_ptr<Listener> listener_of(const RecordedRun& run, const std::string& out) {
  const std::string& task = run.session().recipe.probe.task;
  if (task == "overflow") return std::make_unique<ProbeOverflow>(run.session(), run.runner(), out);
  if (task == "acc_check") return std::make_unique<ProbeCalls>(run.session(), run.runner(), out);
  return std::make_unique<ProbeFiles>(run.session(), run.runner(), out);
}

class Recorded {
 public:
  explicit Recorded(const ProbeWords& o) : o_(o), answer_(o.json, o.quiet), asked_(asked_of(o)) {
    probe_ = parse_recipe("", o.recipe.path, asked_.overrides).probe;
    if (probe_.task == "none")
      throw UserError("E0700", "nothing would be looked at").saw("probe.task = \"none\"");
    at_ = steps_of(o, probe_);
    if (o.threads) asked_.overrides.push_back({"train.threads", std::to_string(*o.threads)});
    asked_.overrides.push_back({"monitor.on", "false"});  // it would look at the same steps
  }

  ExitCode make() {
    refuse_old_dump(asked_.out);
    const Path folder = o_.recipe.path;
    std::string device = given_device().value_or("");
    if (device.empty()) device = recorded_device(read_run_record(folder / "run.json"));
    std::optional<DeviceScope> on;
    if (!device.empty()) {
      on.emplace(device_named(device));
      asked_.overrides.push_back({"train.device", '"' + device + '"'});
    }
    const InterruptScope interrupts("no step was made again, nothing was written");
    if (!o_.quiet && is_terminal(Output::Err)) InterruptScope::answer();
    progress_.show(0, at_.back() + 1, "opening the run", 0);
    MadeFolder made(asked_.out);
    try {
      make_steps(folder);
    } catch (...) {  // what is not whole is not in the way
      if (looked_at_.empty()) made.take_away();
      throw;
    }
    return ExitCode::Ok;
  }

 private:
  void make_steps(const Path& folder) {
    RecordedRun run(folder, at_.back(), asked_.overrides, at_.front());
    const auto listener = listener_of(run, asked_.out);  // which the run outlives
    listener_ = listener.get();
    const std::vector<Rollback> none;
    Control control;
    listener_->run_begun(RunBegun{folder, task_kind(run.session().recipe), none}, control);
    if (control.stop_wish()) {
      progress_.clear();
      answer_.say(fmt::format("which call lies in which is in {}; no step was made\n", asked_.out));
      return end(run);
    }
    begin_step(run, run.begins_at());
    run.go_to_step([&](const StepDone& done) {
      end_step(run, done);
      begin_step(run, done.step);
    });
    end_step(run, run.make_step());
    listener_->steps_over(StepsOver{at_.back() + 1});
    progress_.clear();
    say(run);
    end(run);
  }

  // `number`: from 0 on.
  void begin_step(const RecordedRun& run, std::int64_t number) {
    if (InterruptScope::asked()) leave(run, number);
    const auto begin = static_cast<double>(run.begins_at());
    progress_.show(
        number, at_.back() + 1, fmt::format("from the state behind {}", run.begins_at()),
        (static_cast<double>(number) - begin) / (static_cast<double>(at_.back()) + 1 - begin));
    listener_->step_begun(StepBegun{number + 1});
  }

  void end_step(const RecordedRun& run, const StepDone& done) {
    Control control;
    listener_->step_done(done, control);
    const std::int64_t number = done.step - 1;
    if (differences_.empty()) {
      differences_ = run.differences(done);
      parted_at_ = number;
    }
    if (look_at(probe_, number) == Look::Nothing) return;
    looked_at_.push_back(number);
    losses_.push_back(done.loss);
  }

  [[noreturn]] void leave(const RecordedRun& run, std::int64_t number) {
    progress_.clear();
    listener_->steps_over(StepsOver{number});
    const std::string kept =
        looked_at_.empty()
            ? "nothing was written"
            : fmt::format("the dump of {} in {} is whole",
                          counted(static_cast<std::int64_t>(looked_at_.size()), "step"),
                          asked_.out);
    throw Interrupted(InterruptScope::signal_name(),
                      fmt::format("the run was made again from behind step {} to behind step {} of "
                                  "{}; {}",
                                  run.begins_at(), number, at_.back() + 1, kept)
                          .c_str());
  }

  void say(const RecordedRun& run) {
    for (std::size_t i = 0; i < looked_at_.size(); ++i)
      answer_.say(
          fmt::format("{}: loss {}\n", probe::step_text(looked_at_[i]), loss_text(losses_[i])));
    const auto written = read_written(asked_.out);
    answer_.say(fmt::format("made again from the state behind {} steps; what {} held is in {}{}\n",
                            run.begins_at(), looked_at_.size() == 1 ? "it" : "they", asked_.out,
                            written ? ": " + written->text() : ""));
    if (!differences_.empty())
      log_warning("{} has other numbers than the run recorded: {}; aloft probe redo {} --step {}",
                  probe::step_text(parted_at_), join(differences_, "; "), in_shell(o_.recipe.path),
                  parted_at_);
    for (const std::string& problem : run.damaged()) log_warning("passed over: {}", problem);
  }

  void end(const RecordedRun& run) {
    using Json = nlohmann::ordered_json;
    const Path overflows = Path(asked_.out) / "overflow.json";
    answer_.set("out", asked_.out);
    answer_.set("task", probe_.task);
    answer_.set("run", o_.recipe.path);
    answer_.set("begins_at", run.begins_at());
    answer_.set("steps", looked_at_.empty() ? 0 : at_.back() + 1 - run.begins_at());
    answer_.set("looked_at", looked_at_);
    answer_.set("losses", losses_);
    answer_.set("parted_at", differences_.empty() ? Json(nullptr) : Json(parted_at_));
    answer_.set("differences", differences_);
    const auto written = read_written(asked_.out);
    answer_.set("written", written ? json_of(*written) : Json(nullptr));
    if (probe_.task == "overflow")
      answer_overflows(answer_, overflows, o_.recipe.path, asked_.overrides);
    answer_.end();
  }

  const ProbeWords& o_;
  ProbeAnswer answer_;
  AskedOfProbe asked_;
  ProbeSection probe_;
  std::vector<std::int64_t> at_, looked_at_;
  std::vector<double> losses_;
  std::vector<std::string> differences_;  // of the first step that has other numbers
  std::int64_t parted_at_ = 0;
  Listener* listener_ = nullptr;
  WorkProgress progress_{"step", o_.quiet};
};

}  // namespace

bool is_recorded_run(const ProbeWords& words) {
  return path_exists(Path(words.recipe.path) / "run.json");
}

ExitCode probe_recorded(const ProbeWords& words) {
  refuse_what_is_of_recipes(words);
  Recorded recorded(words);
  set_log_level(LogLevel::Warning);
  return recorded.make();
}

}  // namespace aloft::cli

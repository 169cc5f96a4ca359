// aloft probe redo RUN --step N
#include "cli/probe_redo.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "cli/machine.h"
#include "cli/option_checks.h"
#include "cli/shared_options.h"
#include "cli/work_progress.h"
#include "run/run_directory.h"
#include "runtime/current_device.h"
#include "train/recorded_run.h"
#include "train/redo.h"

namespace aloft::cli {

namespace {

struct Options {
  std::string run;
  std::int64_t step = 0, times = 3;
  std::optional<std::int64_t> threads;
  bool same_memory = false, json = false, quiet = false;
};

// How far it is, on a terminal; Ctrl-C ends it with what is known by then.
class Watch {
 public:
  explicit Watch(const Options& o) : o_(o), steps_("step", o.quiet), repeats_("repeat", o.quiet) {
    if (!o.quiet && is_terminal(Output::Err)) InterruptScope::answer();
    steps_.show(0, o.step, "opening the run", 0);
  }

  void see(const RedoReport& so_far) {
    if (InterruptScope::asked())
      throw Interrupted(InterruptScope::signal_name(), text(so_far).c_str());
    const std::int64_t begin = so_far.begins_at, at = so_far.stands_at;
    const auto repeats = std::ssize(so_far.repeats);
    if (at < o_.step) {
      const auto way = static_cast<double>(o_.step - begin);
      steps_.show(at, o_.step, fmt::format("from the state behind {}", begin),
                  static_cast<double>(at - begin) / way);
    } else {
      steps_.clear();
      repeats_.show(std::min(repeats + 1, o_.times), o_.times, fmt::format("of step {}", o_.step),
                    static_cast<double>(repeats) / static_cast<double>(o_.times));
    }
  }
  void clear() {
    steps_.clear();
    repeats_.clear();
  }

 private:
  std::string text(const RedoReport& so_far) {
    clear();
    std::string text =
        so_far.repeats.empty()
            ? fmt::format("the run was made again from behind step {} to behind step {} of {}",
                          so_far.begins_at, so_far.stands_at, o_.step)
            : fmt::format("{} of {} repeats of step {} were made{}", so_far.repeats.size(),
                          o_.times, o_.step,
                          so_far.repeats.size() > 1 ? ", all with the same bits" : "");
    if (so_far.parted_at)
      text += fmt::format("; step {} has other numbers than the run recorded", *so_far.parted_at);
    else if (so_far.compared_steps > 0)
      text += "; their numbers are those that the run recorded";
    return text + "; nothing was written";
  }

  const Options& o_;
  WorkProgress steps_, repeats_;
};

// Of a step that gives each time what the record does not say.
std::string advice_of(const RedoReport& report) {
  if (!report.is_state_compared)
    return "either the run was computed otherwise than this machine does now, or metrics.jsonl was "
           "changed: no checkpoint right behind the step says which; until that is known, do not "
           "go on from what it saved behind it";
  if (report.variables.empty())
    return "what the run saved behind this step has the bits that it gives now, and can be gone on "
           "from: it is the line of metrics.jsonl that is another, changed or damaged since";
  return "the run was computed otherwise than this machine does now, each time: do not go on from "
         "what it saved behind this step";
}

ExitCode redo(const Options& o) {
  need_recorded_run(o.run);
  RedoOptions options{o.run, o.step, static_cast<int>(o.times), !o.same_memory, {}, machine_name()};
  if (o.threads) options.overrides.push_back({"train.threads", std::to_string(*o.threads)});
  std::string device = given_device().value_or("");
  if (device.empty()) device = recorded_device(read_run_record(Path(o.run) / "run.json"));
  std::optional<DeviceScope> on;
  if (!device.empty()) {
    on.emplace(device_named(device));
    options.overrides.push_back({"train.device", '"' + device + '"'});
  }
  set_log_level(LogLevel::Warning);
  const InterruptScope interrupts("no step was made again, nothing was written");
  Watch watch(o);
  options.told = [&](const RedoReport& so_far) { watch.see(so_far); };
  const RedoReport report = redo_step(options);
  watch.clear();
  if (o.json)
    print_result("{}\n", json_of(report).dump(1));
  else
    print_result("{}", redo_text(report));
  if (report.fault)
    throw EnvironmentError("E0860", "a step that was computed twice has other bits")
        .saw(report.fault->instruction.identity)
        .advice(
            "repeat it: what differs each time elsewhere is memory or a processor; the machine "
            "should not train until it is found");
  if (report.is_comparable && (report.parted_at || !report.variables.empty()))
    throw DivergedError("E0861", "the run's record is not what the step gives now")
        .saw(report.parted_at ? report.numbers.front() : report.variables.front())
        .advice(advice_of(report));
  return ExitCode::Ok;
}

}  // namespace

Action probe_redo(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_run(app, o->run, "run directory; the run may still be training");
  app.add_option("--step", o->step, "the step, counted from 0")->required()->check(at_least(0));
  app.add_option("--times", o->times, "how often it is made")
      ->check(at_least(2))
      ->capture_default_str();
  app.add_flag("--same-memory", o->same_memory,
               "not the last time in other memory, which takes as much of it once more");
  add_threads(app, o->threads);
  add_device(app);
  add_json(app, o->json);
  add_quiet(app, o->quiet);
  return [o] { return redo(*o); };
}

}  // namespace aloft::cli

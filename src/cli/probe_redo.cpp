// aloft probe redo RUN --step N
#include "cli/probe_redo.h"

#include <memory>
#include <optional>

#include "base/log.h"
#include "base/output.h"
#include "cli/machine.h"
#include "cli/option_checks.h"
#include "cli/shared_options.h"
#include "run/run_directory.h"
#include "runtime/current_device.h"
#include "train/redo.h"

namespace aloft::cli {

namespace {

struct Options {
  std::string run;
  std::int64_t step = 0, times = 3;
  std::optional<std::int64_t> threads;
  bool same_memory = false, json = false;
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
  const RedoReport report = redo_step(options);
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
  return [o] { return redo(*o); };
}

}  // namespace aloft::cli

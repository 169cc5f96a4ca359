// What the probe finds in a run's steps, as files in msprobe's layout: docs/probe.md.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/ports.h"
#include "observe/probe/dump.h"
#include "run/listener.h"
#include "train/file_queue.h"
#include "train/probe_tensors.h"
#include "train/runner.h"
#include "train/session.h"

namespace aloft {

class ProbeFiles : public Listener {
 public:
  // `session` and `runner` outlive this. `folder`: where the steps' folders go; empty: probe/ in
  // the run's directory.
  ProbeFiles(const Session& session, const std::unique_ptr<Runner>& runner, Path folder);
  std::string makes() const override { return "the files of the probe"; }

  void run_begun(const RunBegun& e, Control& run) override;
  // EnvironmentError E0603.
  void step_done(const StepDone& e, Control& run) override;
  void steps_over(const StepsOver& e) override;

 private:
  // Whether the probe asked for the value: beside a monitor a program has that one's, too.
  bool is_own(std::string_view name) const;
  void say_missing() const;
  void write_structure(Control& run) const;

  const Session& session_;
  const std::unique_ptr<Runner>& runner_;
  Path folder_;
  // Of a look that steps have.
  struct Looked {
    probe::Dump dump;
    OutputPort<double> all;
    std::string construct, stack;
    std::optional<ProbeTensors> tensors = {};
  };
  void write(const Looked& looked, const Path& folder);
  std::map<Look, Looked> looked_;  // once the run has begun
  std::string missing_from_;       // a program that looks
  // Of task "tensor".
  std::optional<FileQueue> queue_;
  std::uint64_t files_ = 0, bytes_ = 0;
};

}  // namespace aloft

// What the probe finds in a run's steps, as files in msprobe's layout: docs/probe.md.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "frontend/ports.h"
#include "run/listener.h"
#include "train/probe_writer.h"
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
  // Who goes on from the checkpoint finds the files of all steps up to there.
  void checkpoint_begun(const CheckpointBegun& e) override;
  void steps_over(const StepsOver& e) override;
  // Until the files of all steps so far are there. EnvironmentError E0603.
  void settle() { writer_->settle(); }

 private:
  // Whether the probe asked for the value: beside a monitor a program has that one's, too.
  bool is_own(std::string_view name) const;
  void look_into(const Programs& programs);
  void write(const StepDone& e, const EagerTaps& taps);

  const Session& session_;
  const std::unique_ptr<Runner>& runner_;
  Path folder_;
  std::optional<ProbeWriter> writer_;  // once the run has begun
  std::vector<probe::DumpedModule> modules_;
  // Of a look that steps of a compiled program have.
  struct Looked {
    ProbeWriter::Seen seen;
    OutputPort<double> all;
  };
  std::map<Look, Looked> looked_;
};

}  // namespace aloft

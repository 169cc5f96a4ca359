// In which op a step stops to be finite (probe.task "overflow"), as a file: docs/probe.md.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "frontend/ports.h"
#include "observe/probe/overflow.h"
#include "run/listener.h"
#include "train/overflow_file.h"
#include "train/runner.h"
#include "train/session.h"

namespace aloft {

class ProbeOverflow : public Listener {
 public:
  // `session` and `runner` outlive this. `folder`: where overflow.json goes; empty: probe/ in the
  // run's directory.
  ProbeOverflow(const Session& session, const std::unique_ptr<Runner>& runner, Path folder);
  std::string makes() const override { return "overflow.json of the probe"; }

  // EnvironmentError E0603, as of the others.
  void run_begun(const RunBegun& e, Control& run) override;
  void step_done(const StepDone& e, Control& run) override;
  void rolled_back(const RolledBack& e) override;
  void checkpoint_begun(const CheckpointBegun& e) override;
  void steps_over(const StepsOver& e) override;

 private:
  nlohmann::ordered_json first_of_step() const;

  const Session& session_;
  const std::unique_ptr<Runner>& runner_;
  Path folder_;
  // Of a compiled program; an eager step says for itself what there is.
  std::optional<probe::OverflowFinder> finder_;
  OutputPort<double> all_;
  std::optional<OverflowFile> file_;  // once the run has begun
};

}  // namespace aloft

// In which op a step stops to be finite (probe.task "overflow"), as a file: docs/probe.md.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "frontend/ports.h"
#include "observe/probe/overflow.h"
#include "run/listener.h"
#include "train/runner.h"
#include "train/session.h"

namespace aloft {

class ProbeOverflow : public Listener {
 public:
  // `session` and `runner` outlive this. `folder`: where overflow.json goes; empty: probe/ in the
  // run's directory.
  ProbeOverflow(const Session& session, const std::unique_ptr<Runner>& runner, Path folder);
  std::string makes() const override { return "overflow.json of the probe"; }

  void run_begun(const RunBegun& e, Control& run) override;
  // EnvironmentError E0603.
  void step_done(const StepDone& e, Control& run) override;

 private:
  void write() const;

  const Session& session_;
  const std::unique_ptr<Runner>& runner_;
  Path folder_;
  std::optional<probe::OverflowFinder> finder_;  // once the run has begun
  OutputPort<double> all_;
  nlohmann::ordered_json found_;
};

}  // namespace aloft

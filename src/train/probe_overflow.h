// In which op a step stops to be finite (probe.task "overflow"), as a file: docs/probe.md.
#pragma once

#include <cstdint>
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

  // EnvironmentError E0603, as of the others.
  void run_begun(const RunBegun& e, Control& run) override;
  void step_done(const StepDone& e, Control& run) override;
  void rolled_back(const RolledBack& e) override;
  void checkpoint_begun(const CheckpointBegun& e) override;
  void steps_over(const StepsOver& e) override;

 private:
  void take_up(std::int64_t behind);
  nlohmann::ordered_json first_of_step() const;
  void write(bool is_flushed = false);

  const Session& session_;
  const std::unique_ptr<Runner>& runner_;
  Path folder_;
  // Of a compiled program; an eager step says for itself what there is.
  std::optional<probe::OverflowFinder> finder_;
  OutputPort<double> all_;
  std::int64_t steps_ = 0;  // that were looked at
  nlohmann::ordered_json found_ = nlohmann::ordered_json::array();
  bool is_written_ = false;  // as it is
  double written_at_ = 0;    // seconds on the clock
};

}  // namespace aloft

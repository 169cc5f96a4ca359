// Every call that a step makes, as its kernels make it: operands, results and attributes, so that
// it can be made again (probe.task "acc_check", train/acc_check.h). docs/acc-check.md is the page.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/file.h"
#include "run/listener.h"
#include "runtime/device.h"
#include "train/file_queue.h"
#include "train/runner.h"
#include "train/session.h"
#include "train/written_file.h"

namespace aloft {

class ProbeCalls : public Listener {
 public:
  // `session` and `runner` outlive this. `folder`: where the steps' folders go; empty: probe/ in
  // the run's directory.
  ProbeCalls(const Session& session, const std::unique_ptr<Runner>& runner, Path folder);
  ~ProbeCalls() override;
  std::string makes() const override { return "the calls of the probe"; }

  void run_begun(const RunBegun& e, Control& run) override;
  void step_begun(const StepBegun& e) override;
  // EnvironmentError E0603.
  void step_done(const StepDone& e, Control& run) override;
  void steps_over(const StepsOver& e) override;

 private:
  class Taking;
  void refuse_empty_list(const Programs& programs) const;
  const Session& session_;
  const std::unique_ptr<Runner>& runner_;
  Path folder_;
  std::optional<FileQueue> queue_;
  std::unique_ptr<Taking> taking_;  // of the step that is being made
  WrittenByProbe written_;
};

}  // namespace aloft

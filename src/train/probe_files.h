// What the probe finds in a run's steps, as files in msprobe's layout: docs/probe.md.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "frontend/ports.h"
#include "observe/probe/dump.h"
#include "run/listener.h"
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

 private:
  bool is_due(std::int64_t step) const;
  void say_missing() const;

  const Session& session_;
  const std::unique_ptr<Runner>& runner_;
  Path folder_;
  std::optional<probe::Dump> dump_;  // once the run has begun
  OutputPort<double> all_;
  std::string construct_, stack_;
};

}  // namespace aloft

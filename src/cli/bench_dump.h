// What the probe writes of a step that is timed: the files that a run would have, in a folder that
// goes with this.
#pragma once

#include <cstdint>
#include <memory>

#include "base/file.h"
#include "train/probe_files.h"
#include "train/runner.h"
#include "train/session.h"

namespace aloft::cli {

class BenchDump {
 public:
  // `session` and `runner`, which has compiled, outlive this. EnvironmentError E0603 where no
  // folder can be made.
  BenchDump(const Session& session, const std::unique_ptr<Runner>& runner);
  ~BenchDump();
  BenchDump(const BenchDump&) = delete;
  BenchDump& operator=(const BenchDump&) = delete;

  // Whether a probe of this task writes files of each step.
  static bool is_of(const ProbeSection& probe) {
    return probe.task == "statistics" || probe.task == "tensor";
  }

  // The step `number`, counted from 0, is over. EnvironmentError E0603.
  void write(std::int64_t number, const StepNumbers& said);
  // Until the files of all steps so far are there. EnvironmentError E0603.
  void settle();

 private:
  Path folder_;
  std::unique_ptr<ProbeFiles> files_;
};

}  // namespace aloft::cli

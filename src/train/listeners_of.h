// Which listeners of the library a run has, and in which order they hear of it.
#pragma once

#include <memory>
#include <vector>

#include "run/listener.h"
#include "run/run_directory.h"
#include "sources/run_data.h"
#include "train/runner.h"
#include "train/session.h"
#include "train/trainer.h"

namespace aloft {

// All outlive the listeners.
struct RunParts {
  const TrainOptions& options;
  const Session& session;  // its recipe says which listeners there are
  const RunData& data;
  const RunDirectory& directory;
  TrainResult& result;                    // where the newest sample goes, and the profile
  const std::unique_ptr<Runner>& runner;  // there from run_begun() on
};

std::vector<std::unique_ptr<Listener>> listeners_of(const RunParts& run);

}  // namespace aloft

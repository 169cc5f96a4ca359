// run.json while a run goes on: written when it begins, behind each checkpoint, and at its end.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "run/run_directory.h"
#include "train/run_start.h"
#include "train/trainer.h"

namespace aloft {

class KeptRecord {
 public:
  // Outlives this.
  explicit KeptRecord(RunDirectory& directory) : directory_(directory) {}

  // `known`: of run_record(). The run begins behind `step` of `steps`, on from a checkpoint where
  // it `resumes`. One that had ended and has nothing to train keeps the record of its end until
  // then. EnvironmentError.
  void begin(nlohmann::json known, const RunStart& start, std::int64_t step, std::int64_t steps,
             bool resumes);
  // A checkpoint of `step` is whole: a run that finds none any more does not begin anew.
  void saved(std::int64_t step);
  // The run ends, with `error` where that is why. `stop`: of the listener that wished it.
  void end(const TrainResult& result, const std::optional<Stop>& stop,
           const Error* error = nullptr);

 private:
  void keep_environment();
  nlohmann::json result_of(const TrainResult& result, const std::optional<Stop>& stop) const;

  RunDirectory& directory_;
  nlohmann::json record_;
};

}  // namespace aloft

// manifest.json of a checkpoint: what it holds, of which state of which run, and the hashes of its
// files and of itself. Written last: a checkpoint with a manifest that holds is whole.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_seal.h"
#include "checkpoint/best_validation.h"
#include "checkpoint/rollback.h"
#include "frontend/draws.h"
#include "plan/choices.h"

namespace aloft {

// 2: names the run, says whether the state is healthy, and has a hash of itself. 1, of programs
// before, is read too.
inline constexpr int kCheckpointFormat = 2;
// Of steps, samples and tokens. No run comes near; arithmetic on numbers below stays exact.
inline constexpr std::uint64_t kMostInManifest = std::uint64_t{1} << 53;

struct CheckpointMeta {
  int format = kCheckpointFormat;
  std::string run;                  // RunDirectory::run(), or that of Checkpoints
  std::int64_t step = 0;            // attempted steps
  std::uint64_t data_position = 0;  // TokenLoader::seek
  std::int64_t tokens = 0;          // trained on so far
  double time_s = 0;                // spent in steps so far
  std::string policy;               // precision recipe's text
  // Of modules that have one of their own, by path; none said in those of programs before.
  std::optional<std::map<std::string, std::string>> policies = {};
  // Low types that the device lacked; none said in those of programs before, whose had them all.
  std::vector<std::string> missing_types = {};
  Choices choices = {};              // made by measurement; none in those of programs before
  nlohmann::json model;              // config, so that the folder can be loaded on its own
  nlohmann::json recipe;             // as run.json has it; null in those of programs before
  nlohmann::json data;               // data.json without its list of files; null likewise
  std::string problem;               // why nobody should go on from this state; "": it is healthy
  std::optional<double> last_loss;   // of the last step, where it is finite
  std::optional<double> start_loss;  // of the run's first steps, see health.h
  std::int64_t stray_skips = 0;      // in a row up to the step, see health.h; programs before: 0
  std::optional<double> validation_loss;   // of this very state, where it was evaluated
  std::int64_t evaluations = 0;            // in the run's record so far; programs before: 0
  std::optional<BestValidation> best;      // null before the first evaluation
  std::vector<Rollback> rollbacks = {};    // of the run so far; none in those of programs before
  std::vector<double> recent_losses = {};  // of the steps before, where a spike is looked for
  DrawCounts draws;  // under the random state as it is; none in those of programs before
  bool healthy() const { return problem.empty(); }
};

struct Manifest {
  CheckpointMeta meta;
  std::map<std::string, FileSeal> files;  // by name
};

std::string manifest_text(const Manifest& manifest);

// Checks everything that can be checked without the other files: form, types, ranges, and the hash
// of itself. DataError E0641 with `name` as its place.
Manifest parse_manifest(std::string_view text, const std::string& name);

}  // namespace aloft

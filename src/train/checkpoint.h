// Checkpoints: a folder step-000500/ with
//   model.safetensors   parameters and buffers by name, fp32 (the master where there is one)
//   state.safetensors   moments, accumulators, counters, loss scaler, random state
//   manifest.json       format, step, data position, and size and XXH3 of both files
// Written beside as .step-000500.partial, fsynced and renamed: a folder with its final name is
// whole. The newest whole one wins; one that fails its hashes is passed over with a warning.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "frontend/module.h"
#include "frontend/optimizer.h"

namespace aloft {

inline constexpr int kCheckpointFormat = 1;

struct CheckpointMeta {
  std::int64_t step = 0;            // attempted steps
  std::uint64_t data_position = 0;  // TokenLoader::seek
  std::int64_t tokens = 0;          // trained on so far
  double time_s = 0;                // spent in steps so far
  std::string policy;               // precision recipe's text
  nlohmann::json model;             // config, so that the folder can be loaded on its own
};

// `folder`/step-N. Replaces one of the same name.
Path save_checkpoint(const Path& folder, const CheckpointMeta& meta, const nn::Module& model,
                     const Optimizer& optimizer);

// Restores everything that save_checkpoint wrote. DataError E0641: hashes or contents do not fit;
// nothing is changed then.
CheckpointMeta load_checkpoint(const Path& checkpoint, nn::Module& model, Optimizer& optimizer);

// Reads and checks manifest and hashes. DataError E0641.
CheckpointMeta check_checkpoint(const Path& checkpoint);

// The newest whole checkpoint below `folder`; `problems` gets a line for each that is not.
std::optional<Path> newest_checkpoint(const Path& folder, std::vector<std::string>& problems);

// Removes all but the newest `keep` (0: all stay) and what unfinished saves left behind.
void prune_checkpoints(const Path& folder, std::int64_t keep);

}  // namespace aloft

// Checkpoints: a folder step-000500/ with
//   model.safetensors   parameters and buffers by name, fp32 (the master where there is one)
//   average.safetensors the same with the means of the weights in their place, where an optimizer
//                       keeps some (OptimizerSpec::average): for others, and read by nobody here
//   state.safetensors   the optimizer's state (optimizer_state.h) and the random state; those of
//                       further optimizers in state-1.safetensors, state-2.safetensors, ...
//   manifest.json       what it is, and size and hash of these files and of itself (manifest.h)
// Written beside, flushed to the disk and renamed: a folder with its final name is whole. Where
// they lie, which stay, and what killed saves leave: checkpoint_folder.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/optimizer_state.h"
#include "frontend/module.h"
#include "frontend/optimizer.h"

namespace aloft {

// What a checkpoint holds: variables, whose values are read when it is written, and what its
// manifest says.
struct CheckpointParts {
  std::vector<VariablePtr> model;
  std::vector<OptimizerParts> optimizers;
  CheckpointMeta meta;
};

// Of a model and optimizers as they stand; completes `meta` by what they and this thread say.
CheckpointParts parts_of(CheckpointMeta meta, const nn::Module& model,
                         const std::vector<Optimizer>& optimizers);

// Fills `checkpoint`, an empty folder, and flushes it to the disk. `problem`: asked behind the
// tensors, before the manifest, for what that says of the state's health; without it, what `parts`
// say. EnvironmentError E0603.
void write_checkpoint(const Path& checkpoint, const CheckpointParts& parts,
                      const std::function<std::string()>& problem = {});
// The parts and their files in one.
void write_checkpoint(const Path& checkpoint, const CheckpointMeta& meta, const nn::Module& model,
                      const std::vector<Optimizer>& optimizers);

// Replaces what the manifest of a whole checkpoint says by `meta`, at one stroke and on the disk;
// its files stay as they are. The text of the new one. DataError E0601, E0641; EnvironmentError
// E0603.
std::string rewrite_manifest(const Path& checkpoint, const CheckpointMeta& meta);

// Restores everything that write_checkpoint wrote, also of parameters that were unfrozen before it
// was saved and are frozen here; drops the gradients that backward() left. The optimizers stand in
// the order in which they were saved. DataError E0641: hashes or contents do not fit; nothing is
// changed then.
CheckpointMeta load_checkpoint(const Path& checkpoint, const nlohmann::json& model_config,
                               nn::Module& model, const std::vector<Optimizer>& optimizers);

// How the model that a checkpoint was trained as differs from this one in what its weights mean,
// and in its precision: "model.vocab: 300, now 256". Empty where it does not.
std::vector<std::string> model_differences(const CheckpointMeta& meta,
                                           const nlohmann::json& model_config,
                                           const std::string& policy);

// Reads the manifest alone. DataError E0601, E0641.
Manifest read_manifest(const Path& checkpoint);

// What a checkpoint is opened for: a run that goes on reads all of it, a model that is used its
// weights alone, or the means of them that stand in the optimizer's state.
enum class CheckpointUse { GoingOn, Weights, Means };

// Reads and checks the manifest, the hashes of the files that are read and the sizes of the others,
// which may be several times as large. DataError E0601, E0641.
CheckpointMeta check_checkpoint(const Path& checkpoint, CheckpointUse use = CheckpointUse::GoingOn);

}  // namespace aloft

#include "train/checkpoints.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/folder_lock.h"
#include "train/checkpoint_folder.h"

namespace aloft {

Checkpoints::Checkpoints(const Path& folder, std::int64_t keep) : keep_(keep) {
  make_folder(folder);
  lock_ = std::make_unique<FolderLock>(folder / "checkpoints.lock");
  folder_ = std::make_unique<CheckpointFolder>(folder);
}

Checkpoints::~Checkpoints() = default;

Path Checkpoints::save(const LoopPosition& at, const nn::Module& model,
                       const Optimizer& optimizer) {
  if (at.step < 0)
    throw UserError("E0824", "a checkpoint is of a step that cannot be")
        .saw("step " + std::to_string(at.step))
        .need("the number of steps made, 0 or more");
  CheckpointMeta meta;
  meta.step = at.step;
  meta.data_position = at.data_position;
  meta.policy = model.policy().str();
  Path saved = folder_->save(meta, model, optimizer);
  folder_->prune({.newest = keep_, .best = 0}, at.step);
  return saved;
}

std::optional<LoopPosition> Checkpoints::load(nn::Module& model, Optimizer& optimizer) {
  const auto newest = folder_->to_resume();
  if (!newest) return std::nullopt;
  const CheckpointMeta meta = load_checkpoint(newest->path, nlohmann::json(), model, optimizer);
  return LoopPosition{meta.step, meta.data_position};
}

}  // namespace aloft

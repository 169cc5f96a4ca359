#include "checkpoint/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/finite_values.h"
#include "checkpoint/run_name.h"
#include "frontend/averaged_weights.h"
#include "runtime/buffer.h"

namespace aloft {

Checkpoints::Checkpoints(const Path& folder, std::int64_t keep) : keep_(keep) {
  if (keep < 0)
    throw UserError("E0824", "fewer than no checkpoints cannot stay")
        .at(folder.string())
        .saw(std::to_string(keep))
        .need("0 or more (0: all)");
  make_folder(folder);
  lock_ = std::make_unique<FolderLock>(folder / "checkpoints.lock");
  folder_ = std::make_unique<CheckpointFolder>(folder);
}

Checkpoints::~Checkpoints() = default;

namespace {

// Whether a step that is skipped lowers the loss scale: that is how it is found.
bool searches_scale(const Optimizer& optimizer) {
  const scalar::ScalerRule& rule = optimizer.scaler();
  return rule.kind == scalar::ScalerKind::Dynamic &&
         optimizer.scale->buffer->read_one<float>() > rule.min;
}

// What an optimizer's state shows of itself, without any loss: "" where nothing is wrong. Sums over
// micro-batches that overflowed in the search of a loss scale are dropped by their step.
std::string problem_of_values(const Optimizer& optimizer) {
  std::vector<VariablePtr> all = optimizer.given();
  const std::vector<VariablePtr> others = optimizer.state();
  all.insert(all.end(), others.begin(), others.end());
  for (const VariablePtr& v : all)
    if (!has_only_finite(*v) && !(v->cls == StateClass::Gradient && searches_scale(optimizer)))
      return "'" + v->name.str() + "' has values that are not finite";
  return "";
}

// Running statistics; a mask may be infinite.
std::string problem_of_buffers(const nn::Module& model) {
  for (const VariablePtr& v : model.buffers())
    if (has_nan(*v)) return "'" + v->name.str() + "' has values that are no numbers";
  return "";
}

// A loop that tells no losses: its last step was made, or skipped by the search of a loss scale.
std::string problem_of_last_step(const Optimizer& optimizer) {
  const auto skipped = optimizer.overflow_run->buffer->read_one<std::int32_t>();
  return skipped == 0 || searches_scale(optimizer)
             ? ""
             : "the gradients of the last step were not finite";
}

// Whatever else the optimizers train would be in no checkpoint, what one trains in two of its
// files.
void check_trains(const std::vector<Optimizer>& optimizers, const nn::Module& model) {
  if (optimizers.empty())
    throw UserError("E0807", "a checkpoint is of no optimizer").need("one or more");
  const std::vector<VariablePtr> all = model.parameters();
  std::set<VariablePtr> counts;
  for (const Optimizer& optimizer : optimizers) {
    if (!counts.insert(optimizer.applied).second)
      throw UserError("E0807", "an optimizer is given twice").need("each once");
    for (const VariablePtr& p : optimizer.given())
      if (std::find(all.begin(), all.end(), p) == all.end())
        throw UserError("E0807", "the optimizer trains a parameter that the model does not have")
            .saw("'" + p->name.str() + "'")
            .need("the model that the optimizer was made for, whole")
            .advice("several models in one training: make them children of one module");
  }
}

}  // namespace

void Checkpoints::step(const StepResult& result, const Optimizer& optimizer) {
  const auto [it, is_new] = healths_.try_emplace(
      optimizer.applied, Health(optimizer.scaler(), {}, std::exchange(stray_skips_, 0)));
  last_loss_ = result.loss();
  if (!start_loss_ && std::isfinite(*last_loss_)) start_loss_ = last_loss_;
  it->second.step(*last_loss_, result.loss_scale.item(), result.skipped());
}

// Of what was told no loss by what its last step left. The run's first loss, and the state's, are
// of one kind where there is one optimizer, which may have taken another's place.
std::string Checkpoints::problem_of_losses(const std::vector<Optimizer>& optimizers,
                                           std::optional<double> loss) const {
  const bool is_one = optimizers.size() == 1;
  for (const Optimizer& optimizer : optimizers) {
    const auto it = healths_.find(optimizer.applied);
    std::string p = it == healths_.end() ? problem_of_last_step(optimizer)
                    : is_one             ? it->second.since(start_loss_).problem(loss)
                                         : it->second.problem();
    if (!p.empty()) return p;
  }
  return loss ? problem_of_loss(*loss, is_one ? start_loss_ : std::nullopt) : "";
}

void Checkpoints::belong_to(const std::string& run) {
  run_ = run;
  folder_->belong_to(run);
}

// Of a training that load() did not begin. The next load() could not tell it from an older one in
// the same folder.
void Checkpoints::begin_run() {
  folder_->recover();
  if (const auto others = folder_->newest())
    throw UserError("E0827", "the folder holds the checkpoints of another training")
        .at(others->path.string())
        .saw("a training that has not begun with load()")
        .need("a folder without whole checkpoints")
        .advice("load() before the first step, to go on with it; or another folder, to begin anew");
  belong_to(new_run_name());
}

Path Checkpoints::save(const LoopPosition& at, const nn::Module& model, const Optimizer& optimizer,
                       std::optional<double> loss) {
  return save(at, model, std::vector<Optimizer>{optimizer}, loss);
}

Path Checkpoints::save(const LoopPosition& at, const nn::Module& model,
                       const std::vector<Optimizer>& optimizers, std::optional<double> loss) {
  if (at.step < 0 || static_cast<std::uint64_t>(at.step) > kMostInManifest)
    throw UserError("E0824", "a checkpoint is of a step that cannot be")
        .saw("step " + std::to_string(at.step))
        .need("the number of steps made, from 0 to 2^53");
  if (newest_ && at.step < *newest_)
    throw UserError("E0824", "the training has a checkpoint of a later step")
        .saw(fmt::format("step {}, behind one of step {}", at.step, *newest_))
        .need("a step from there on")
        .advice("go on from the position that load() gives; to begin anew, take another folder");
  if (at.data_position > kMostInManifest)
    throw UserError("E0824", "a checkpoint is of a place in the data that cannot be")
        .saw("data_position " + std::to_string(at.data_position))
        .need("the number of samples handed out, at most 2^53");
  check_trains(optimizers, model);
  need_own_values(model.parameters(), "a checkpoint is saved");
  if (!run_) begin_run();
  CheckpointMeta meta;
  meta.run = *run_;
  meta.step = at.step;
  meta.data_position = at.data_position;
  meta.policy = model.policy().str();
  for (const Optimizer& optimizer : optimizers)
    if (meta.healthy()) meta.problem = problem_of_values(optimizer);
  if (meta.healthy()) meta.problem = problem_of_buffers(model);
  if (meta.healthy()) meta.problem = problem_of_losses(optimizers, loss);
  if (!meta.healthy() && newest_ == at.step) {
    log_warning("step {}: {}: not saved, the checkpoint of a healthy state of this step stays",
                at.step, meta.problem);
    return folder_->path_of(at.step);
  }
  if (!meta.healthy())
    log_warning("step {}: {}: the checkpoint is marked, and no loop goes on from it by itself",
                at.step, meta.problem);
  if (last_loss_ && std::isfinite(*last_loss_)) meta.last_loss = last_loss_;
  if (optimizers.size() == 1) {
    const auto it = healths_.find(optimizers[0].applied);
    meta.start_loss = start_loss_;
    meta.stray_skips = it == healths_.end() ? stray_skips_ : it->second.kept().second;
  }
  Path saved = folder_->save(meta, model, optimizers);
  if (meta.healthy()) newest_ = at.step;
  folder_->prune({.newest = keep_, .best = 0}, at.step);
  return saved;
}

std::optional<LoopPosition> Checkpoints::load(nn::Module& model, Optimizer& optimizer) {
  return load(model, std::vector<Optimizer>{optimizer});
}

std::optional<LoopPosition> Checkpoints::load(nn::Module& model,
                                              const std::vector<Optimizer>& optimizers) {
  check_trains(optimizers, model);
  need_own_values(model.parameters(), "a checkpoint is loaded");
  const auto newest = folder_->to_resume();
  if (!newest) {
    // Begun anew from states that nobody goes on from, it is their training still.
    if (const auto marked = folder_->newest()) belong_to(marked->meta.run);
    return std::nullopt;
  }
  const CheckpointMeta meta = load_checkpoint(newest->path, nlohmann::json(), model, optimizers);
  belong_to(meta.run);
  newest_ = meta.step;
  start_loss_ = meta.start_loss;
  stray_skips_ = optimizers.size() == 1 ? meta.stray_skips : 0;
  last_loss_.reset();
  healths_.clear();
  return LoopPosition{meta.step, meta.data_position};
}

}  // namespace aloft

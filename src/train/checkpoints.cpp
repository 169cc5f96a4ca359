#include "train/checkpoints.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "train/checkpoint_folder.h"
#include "train/run_directory.h"

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

template <class Bits>
bool has_all_ones(const Variable& v, Bits exponent) {
  const auto* values = static_cast<const Bits*>(v.data);
  const std::int64_t count = v.type.shape.max_numel();
  bool found = false;
  for (std::int64_t i = 0; i < count; ++i) found |= (values[i] & exponent) == exponent;
  return found;
}

// Whether an infinity or a NaN is among the values.
bool is_ruined(const Variable& v) {
  switch (v.type.dtype) {
    case DType::F32:
      return has_all_ones<std::uint32_t>(v, 0x7f800000);
    case DType::BF16:
      return has_all_ones<std::uint16_t>(v, 0x7f80);
    case DType::F16:
      return has_all_ones<std::uint16_t>(v, 0x7c00);
    case DType::F64:
      return has_all_ones<std::uint64_t>(v, 0x7ff0000000000000);
    default:
      return false;
  }
}

// Whether a step that is skipped lowers the loss scale: that is how it is found.
bool searches_scale(const Optimizer& optimizer) {
  const scalar::ScalerRule& rule = optimizer.scaler();
  return rule.kind == scalar::ScalerKind::Dynamic &&
         *static_cast<const float*>(optimizer.scale->data) > rule.min;
}

// What an optimizer's state shows of itself, without any loss: "" where nothing is wrong. Sums over
// micro-batches that overflowed in the search of a loss scale are dropped by their step.
std::string problem_of_values(const Optimizer& optimizer) {
  std::vector<VariablePtr> all = optimizer.given();
  const std::vector<VariablePtr> others = optimizer.state();
  all.insert(all.end(), others.begin(), others.end());
  for (const VariablePtr& v : all)
    if (is_ruined(*v) && !(v->cls == StateClass::Gradient && searches_scale(optimizer)))
      return "'" + v->name.str() + "' has values that are not finite";
  return "";
}

// A loop that tells no losses: its last step was made, or skipped by the search of a loss scale.
std::string problem_of_last_step(const Optimizer& optimizer) {
  const auto skipped = *static_cast<const std::int32_t*>(optimizer.overflow_run->data);
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

// By what it trains: a loop may go on with another optimizer of the same parameters.
VariablePtr what_it_trains(const Optimizer& optimizer) {
  return optimizer.given().empty() ? nullptr : optimizer.given().front();
}

}  // namespace

void Checkpoints::step(const StepResult& result, const Optimizer& optimizer) {
  auto it = std::find_if(healths_.begin(), healths_.end(),
                         [&](const auto& h) { return h.first == what_it_trains(optimizer); });
  if (it == healths_.end()) {
    const bool is_first = healths_.empty();
    Health begun(optimizer.scaler(), is_first ? start_loss_ : std::nullopt);
    it = healths_.insert(it, {what_it_trains(optimizer), std::move(begun)});
  }
  last_loss_ = result.loss();
  it->second.step(*last_loss_, result.loss_scale.item(), result.skipped());
}

// Of what was told no loss by what its last step left. `loss`, of the state, is of one optimizer's
// kind where there is one.
std::string Checkpoints::problem_of_losses(const std::vector<Optimizer>& optimizers,
                                           std::optional<double> loss) const {
  const bool is_one = healths_.size() == 1 && optimizers.size() == 1;
  for (const auto& [trained, health] : healths_)
    if (std::string p = health.problem(is_one ? loss : std::nullopt); !p.empty()) return p;
  for (const Optimizer& optimizer : optimizers)
    if (std::none_of(healths_.begin(), healths_.end(),
                     [&](const auto& h) { return h.first == what_it_trains(optimizer); }))
      if (std::string p = problem_of_last_step(optimizer); !p.empty()) return p;
  return loss ? problem_of_loss(*loss, healths_.empty() ? start_loss_ : std::nullopt) : "";
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
  if (at.data_position > kMostInManifest)
    throw UserError("E0824", "a checkpoint is of a place in the data that cannot be")
        .saw("data_position " + std::to_string(at.data_position))
        .need("the number of samples handed out, at most 2^53");
  check_trains(optimizers, model);
  if (!run_) begin_run();
  CheckpointMeta meta;
  meta.run = *run_;
  meta.step = at.step;
  meta.data_position = at.data_position;
  meta.policy = model.policy().str();
  for (const Optimizer& optimizer : optimizers)
    if (meta.healthy()) meta.problem = problem_of_values(optimizer);
  if (meta.healthy()) meta.problem = problem_of_losses(optimizers, loss);
  if (!meta.healthy())
    log_warning("step {}: {}: the checkpoint is marked, and no loop goes on from it by itself",
                at.step, meta.problem);
  if (last_loss_ && std::isfinite(*last_loss_)) meta.last_loss = last_loss_;
  if (healths_.size() < 2)
    meta.start_loss = healths_.empty() ? start_loss_ : healths_[0].second.start_loss();
  Path saved = folder_->save(meta, model, optimizers);
  folder_->prune({.newest = keep_, .best = 0}, at.step);
  return saved;
}

std::optional<LoopPosition> Checkpoints::load(nn::Module& model, Optimizer& optimizer) {
  return load(model, std::vector<Optimizer>{optimizer});
}

std::optional<LoopPosition> Checkpoints::load(nn::Module& model,
                                              const std::vector<Optimizer>& optimizers) {
  check_trains(optimizers, model);
  const auto newest = folder_->to_resume();
  if (!newest) {
    // Begun anew from states that nobody goes on from, it is their training still.
    if (const auto marked = folder_->newest()) belong_to(marked->meta.run);
    return std::nullopt;
  }
  const CheckpointMeta meta = load_checkpoint(newest->path, nlohmann::json(), model, optimizers);
  belong_to(meta.run);
  start_loss_ = meta.start_loss;
  last_loss_.reset();
  healths_.clear();
  return LoopPosition{meta.step, meta.data_position};
}

}  // namespace aloft

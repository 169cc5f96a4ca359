#include "mindspore/callbacks.h"

#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/output.h"

namespace aloft::ms {
namespace {

std::int64_t not_negative(std::int64_t n, const char* what) {
  if (n < 0)
    throw UserError("E0841", "a number of a callback is out of range")
        .saw(std::string(what) + " = " + std::to_string(n))
        .need("0 or more");
  return n;
}

}  // namespace

double RunContext::loss() const {
  if (!result) throw UserError("E0841", "there is no loss before the first step");
  return result->loss();
}

LossMonitor::LossMonitor(std::int64_t per_print_times)
    : every_(not_negative(per_print_times, "per_print_times")) {}

void LossMonitor::on_train_step_end(RunContext& run) {
  const double loss = run.loss();
  if (!std::isfinite(loss))
    throw DivergedError("E0822", "training cannot go on: the loss is not finite")
        .saw(fmt::format("epoch {}, step {}: {}", run.cur_epoch_num, run.step_in_epoch, loss))
        .advice("a lower learning rate");
  if (every_ == 0 || run.cur_step_num - last_ < every_) return;
  last_ = run.cur_step_num;
  print_result("epoch: {} step: {}, loss is {}\n", run.cur_epoch_num, run.step_in_epoch, loss);
}

void TimeMonitor::on_train_epoch_begin(RunContext& run) {
  began_ = monotonic_seconds();
  steps_ = run.cur_step_num;
}

void TimeMonitor::on_train_epoch_end(RunContext& run) {
  const double ms = 1000 * (monotonic_seconds() - began_);
  const auto steps = static_cast<double>(run.cur_step_num - steps_);
  print_result("Train epoch time: {:5.3f} ms, per step time: {:5.3f} ms\n", ms, ms / steps);
}

ModelCheckpoint::ModelCheckpoint(const Path& directory, const CheckpointConfig& config)
    : config_(config) {
  not_negative(config.save_checkpoint_steps, "save_checkpoint_steps");
  not_negative(config.keep_checkpoint_max, "keep_checkpoint_max");
  checkpoints_ = std::make_shared<Checkpoints>(directory, config.keep_checkpoint_max);
}

std::optional<LoopPosition> ModelCheckpoint::load(nn::Module& network, Optimizer& optimizer) {
  const std::optional<LoopPosition> at = checkpoints_->load(network, optimizer);
  if (at) seen_ = saved_ = at->step;
  return at;
}

void ModelCheckpoint::on_train_begin(RunContext&) { before_ = seen_; }

void ModelCheckpoint::on_train_step_end(RunContext& run) {
  seen_ = before_ + run.cur_step_num;
  checkpoints_->step(*run.result, *run.optimizer);
  const std::int64_t every = config_.save_checkpoint_steps;
  if (every > 0 && seen_ - saved_ >= every) save(run);
}

void ModelCheckpoint::on_train_end(RunContext& run) {
  if (seen_ > saved_) save(run);
}

void ModelCheckpoint::save(const RunContext& run) {
  checkpoints_->save({seen_, run.data_position}, *run.network, *run.optimizer);
  saved_ = seen_;
}

}  // namespace aloft::ms

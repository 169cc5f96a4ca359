#include "train/tensorboard_events.h"

#include "base/log.h"
#include "tasks/task.h"

namespace aloft {

void TensorBoardEvents::run_begun(const RunBegun& e, Control&) {
  rate_ = "train/" + std::string(e.task.rate);
  folder_ = e.folder;
  open_behind(e.step, e.is_evaluated);
}

void TensorBoardEvents::open_behind(std::int64_t step, bool is_evaluated) {
  cut_events(folder_, step, is_evaluated ? "" : "validation/");
  board_.emplace(folder_);
  if (step > 0) board_->restart_at(step + 1);
}

void TensorBoardEvents::rolled_back(const RolledBack& e) {
  board_->flush();
  board_.reset();
  open_behind(e.step, e.is_evaluated);
}

void TensorBoardEvents::step_done(const StepDone& e, Control&) {
  board_->scalar("train/loss", e.loss, e.step);
  board_->scalar("train/lr", e.lr, e.step);
  board_->scalar("train/grad_norm", e.grad_norm, e.step);
  board_->scalar("train/loss_scale", e.loss_scale, e.step);
  board_->scalar(rate_, e.tokens_per_s, e.step);
}

void TensorBoardEvents::evaluation_done(const EvaluationDone& e, Control&) {
  if (e.is_repeated) return;
  const ValidationLoss& loss = e.validation;
  board_->scalar("validation/loss", loss.loss, e.step);
  for (const Measure& m : loss.measures) board_->scalar("validation/" + m.name, m.value, e.step);
  board_->flush();
}

void TensorBoardEvents::checkpoint_begun(const CheckpointBegun&) { board_->sync(); }

void TensorBoardEvents::run_closing(const RunClosing& e) {
  try {
    board_->flush();
  } catch (const Error& error) {
    if (!e.error) throw;
    log_warning("TensorBoard's events are not whole: {}", error.what());
  }
}

}  // namespace aloft

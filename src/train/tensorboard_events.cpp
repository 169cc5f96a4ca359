#include "train/tensorboard_events.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/log.h"
#include "tasks/task.h"
#include "types/trends.h"

namespace aloft {

namespace {

// How many elements have each exponent, from the lowest that some have to the highest; zeros and
// what is not finite stand at the ends of the type's range.
Histogram histogram_of(const std::vector<std::int64_t>& exponents) {
  Histogram h;
  std::size_t from = 0, to = exponents.size();
  while (from < to && exponents[from] == 0) ++from;
  while (to > from && exponents[to - 1] == 0) --to;
  for (std::size_t e = from; e < to; ++e) {
    const double exponent = static_cast<double>(e) - 127;
    h.limits.push_back(exponent + 0.5);
    h.counts.push_back(static_cast<double>(exponents[e]));
    h.sum += exponent * h.counts.back();
    h.squares += exponent * exponent * h.counts.back();
  }
  h.least = h.limits.empty() ? 0 : h.limits.front() - 0.5;
  h.largest = h.limits.empty() ? 0 : h.limits.back() - 0.5;
  return h;
}

}  // namespace

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

void TensorBoardEvents::trends_seen(const TrendsSeen& e, Control&) {
  for (const LayerTrends& t : e.layers) {
    for (std::size_t i = 0; i < kTrendNames.size(); ++i)
      if (t.numbers[i])
        board_->scalar(fmt::format("trends/{}/{}", kTrendNames[i], t.layer), *t.numbers[i], e.step);
    for (const auto& [name, exponents] : {std::pair("output_exponents", &t.output_exponents),
                                          std::pair("gradient_exponents", &t.gradient_exponents)})
      if (!exponents->empty())
        board_->histogram(fmt::format("trends/{}/{}", name, t.layer), histogram_of(*exponents),
                          e.step);
  }
  std::map<std::string, int> raised;
  for (const TrendAlert& alert : e.alerts) ++raised[alert.rule];
  for (const auto& [rule, layers] : raised) board_->scalar("alerts/" + rule, layers, e.step);
  if (!e.alerts.empty()) board_->flush();
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

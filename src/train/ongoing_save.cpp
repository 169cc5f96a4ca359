#include "train/ongoing_save.h"

#include <utility>

#include "base/log.h"
#include "runtime/current_device.h"

namespace aloft {

void say_problem(std::int64_t step, const std::string& problem) {
  if (!problem.empty())
    log_warning("step {}: {}: the checkpoint is marked, and no run goes on from it by itself", step,
                problem);
}

void OngoingSave::reserve(const nn::Module& model, const Optimizer& optimizer) {
  memory_ = current_device().allocate(StateCopy::bytes_of(model, optimizer));
  memory_.zero();
}

void OngoingSave::begin(const CheckpointMeta& meta, const nn::Module& model,
                        const Optimizer& optimizer, const Health& health,
                        std::function<void()> saved) {
  if (!memory_) reserve(model, optimizer);
  step_ = meta.step;
  health_ = health;
  saver_.begin(meta, model, optimizer, memory_, std::move(saved));
}

void OngoingSave::hear(const StepDone& next, const Measure& measure) {
  if (!is_under_way() || is_judged()) return;
  std::string problem = health_->problem(next.loss);
  if (!problem.empty() && next.skipped) problem = health_->problem(measure());
  judge(problem);
}

void OngoingSave::judge(const std::string& problem) {
  say_problem(step_, problem);
  problem_ = problem;
  saver_.under_way()->judge(problem);
}

std::optional<OngoingSave::Saved> OngoingSave::settle(const Measure& measure) {
  if (!is_under_way()) return std::nullopt;
  if (!is_judged()) judge(health_->problem(measure()));
  Path path = saver_.settle();
  return Saved{step_, std::move(path), problem_};
}

}  // namespace aloft

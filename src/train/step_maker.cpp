#include "train/step_maker.h"

#include "base/clock.h"
#include "frontend/random.h"

namespace aloft {

StepMaker::StepMaker(Optimizer& optimizer, std::int64_t accumulate, std::int64_t context)
    : optimizer_(optimizer),
      accumulate_(accumulate),
      context_(context),
      names_(culprit_names(optimizer)) {}

StepMaker::Made StepMaker::make(Runner& runner, TokenLoader& loader) {
  const double start = monotonic_seconds();
  double micro_losses = 0;
  StepDone r;
  random_before_ = random_numbers();
  for (std::int64_t m = 1; m < accumulate_; ++m) {
    const Batch& batch = *loader.next();
    inside_ = Inside::MicroBatches;
    micro_losses += runner.accumulate(batch);
    r.tokens += batch.rows * context_;
  }
  const Batch& batch = *loader.next();
  inside_ = Inside::Update;
  const StepNumbers n = runner.step(batch);
  inside_ = Inside::Nothing;
  r.tokens += batch.rows * context_;
  r.time_s = monotonic_seconds() - start;
  r.loss = (micro_losses + n.loss) / static_cast<double>(accumulate_);
  r.lr = n.lr;
  r.grad_norm = n.grad_norm;
  r.loss_scale = n.loss_scale;
  r.skipped = !n.finite;
  if (r.skipped && n.culprit >= 0 && n.culprit < static_cast<int>(names_.size()))
    r.culprit = names_[n.culprit];
  r.tokens_per_s = static_cast<double>(r.tokens) / r.time_s;
  return {std::move(r), n.culprit};
}

void StepMaker::undo_micro_batches() {
  optimizer_.drop_micro_batches();
  set_random_numbers(random_before_);
  begin_draws();
  inside_ = Inside::Nothing;
}

}  // namespace aloft

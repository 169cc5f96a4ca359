#include "train/step_maker.h"

#include <exception>

#include "base/clock.h"
#include "frontend/random.h"

namespace aloft {

StepMaker::StepMaker(Optimizer& optimizer, std::int64_t accumulate, std::int64_t units)
    : optimizer_(optimizer),
      accumulate_(accumulate),
      units_(units),
      names_(culprit_names(optimizer)) {}

void StepMaker::load(Runner& runner, std::int64_t number, std::int64_t part,
                     const ExampleBatch& batch) {
  runner.load(kind(part), batch, number);
  loaded_units_ = batch.units > 0 ? batch.units : batch.rows * units_;
  is_loaded_ = true;
}

namespace {
// Null where there is none: the source says why once more when it is asked again.
const ExampleBatch* next_if_any(ExampleSource& examples) {
  try {
    return examples.next();
  } catch (const std::exception&) {
    return nullptr;
  }
}
}  // namespace

StepMaker::Made StepMaker::make(Runner& runner, ExampleSource& examples, std::int64_t number) {
  const double start = monotonic_seconds();
  double micro_losses = 0;
  StepNumbers n;
  StepDone r;
  random_before_ = random_numbers();
  for (std::int64_t part = 0; part < accumulate_; ++part) {
    if (!is_loaded_) load(runner, number, part, *examples.next());
    is_loaded_ = false;
    const bool is_last = part + 1 == accumulate_;
    inside_ = is_last ? Inside::Update : Inside::MicroBatches;
    runner.issue(kind(part));
    r.tokens += loaded_units_;
    if (is_last) position_ = examples.position();
    if (runner.loads_ahead())
      if (const ExampleBatch* ahead = next_if_any(examples))
        load(runner, number + is_last, is_last ? 0 : part + 1, *ahead);
    if (is_last)
      n = runner.numbers();
    else
      micro_losses += runner.loss(Runner::Part::MicroBatch);
  }
  inside_ = Inside::Nothing;
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

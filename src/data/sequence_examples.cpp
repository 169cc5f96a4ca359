#include "data/sequence_examples.h"

#include <algorithm>

#include "data/loader.h"
#include "data/prefetch.h"

namespace aloft {

struct SequenceExamples::Slot {
  std::vector<std::int32_t> inputs, targets;
  std::vector<float> weights;
  std::int64_t rows = 0, tokens = 0, counted = 0;
  std::uint64_t position_after = 0;
};

SequenceExamples::SequenceExamples(std::shared_ptr<const Sequences> sequences,
                                   std::shared_ptr<const std::vector<std::uint32_t>> which,
                                   SequenceOptions options)
    : sequences_(std::move(sequences)),
      which_(std::move(which)),
      options_(options),
      walk_(which_->size(),
            static_cast<std::uint64_t>(std::max<std::int64_t>(0, options.order.batch)),
            options.order.last, options.order.epochs),
      position_(options.order.position),
      filling_(options.order.position) {
  const auto rows = static_cast<std::size_t>(options_.order.batch);
  const std::size_t numbers = rows * static_cast<std::size_t>(options_.length);
  const double bytes = static_cast<double>(2 * numbers + rows) * sizeof(std::int32_t);
  auto slots = make_slots<Slot>(options_.order.prefetch, bytes, [&](Slot& slot) {
    slot.inputs.resize(numbers);
    slot.targets.resize(numbers);
    slot.weights.resize(rows);
  });
  prefetcher_ = std::make_unique<Prefetcher<Slot>>(std::move(slots),
                                                   [this](Slot& slot) { return fill(slot); });
}

SequenceExamples::~SequenceExamples() = default;

const ExampleBatch* SequenceExamples::next() {
  const Slot* slot = prefetcher_->next();
  if (!slot) return nullptr;
  position_ = slot->position_after;
  batch_.columns.assign(
      {std::as_bytes(std::span(slot->inputs)), std::as_bytes(std::span(slot->targets))});
  if (options_.has_weights) batch_.columns.push_back(std::as_bytes(std::span(slot->weights)));
  batch_.rows = slot->rows;
  batch_.counted_targets = slot->counted;
  batch_.units = slot->tokens;
  return &batch_;
}

std::size_t SequenceExamples::sequence_at(std::uint64_t position, std::uint64_t row) const {
  const std::uint64_t at = sample_at(walk_.sample(position, row), which_->size(), options_.order);
  return (*which_)[at];
}

std::int64_t SequenceExamples::targets_of_batch(std::uint64_t position) const {
  std::int64_t sum = 0;
  for (std::uint64_t row = 0; row < walk_.rows_at(position); ++row)
    sum += sequences_->targets(sequence_at(position, row));
  return sum;
}

float SequenceExamples::next_weight(std::int64_t targets) {
  if (options_.micro_batches < 2) return 1;
  if (part_ == 0) {
    targets_of_step_ = 0;
    std::uint64_t position = filling_;
    for (std::int64_t k = 0; k < options_.micro_batches; ++k) {
      targets_of_step_ += targets_of_batch(position);
      position += walk_.rows_at(position);
    }
  }
  part_ = (part_ + 1) % options_.micro_batches;
  return static_cast<float>(static_cast<double>(options_.micro_batches * targets) /
                            static_cast<double>(targets_of_step_));
}

// Runs on the prefetch thread.
bool SequenceExamples::fill(Slot& slot) {
  const std::uint64_t rows = walk_.rows_at(filling_);
  if (rows == 0) return false;
  std::ranges::fill(slot.inputs, 0);
  std::ranges::fill(slot.targets, kIgnoredTarget);
  slot.tokens = slot.counted = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t sequence = sequence_at(filling_, row);
    fill_row(slot, row, sequence);
    slot.tokens += sequences_->inputs(sequence);
    slot.counted += sequences_->targets(sequence);
  }
  std::ranges::fill(slot.weights, next_weight(slot.counted));
  slot.rows = static_cast<std::int64_t>(rows);
  slot.position_after = filling_ += rows;
  return true;
}

void SequenceExamples::fill_row(Slot& slot, std::size_t row, std::size_t sequence) const {
  const std::size_t first = row * static_cast<std::size_t>(options_.length);
  const auto inputs = static_cast<std::size_t>(sequences_->inputs(sequence));
  for (std::size_t i = 0; i < inputs; ++i) {
    const std::uint32_t input = sequences_->token(sequence, i);
    const std::uint32_t target = sequences_->token(sequence, i + 1);
    slot.inputs[first + i] = static_cast<std::int32_t>(input & ~kLearntToken);
    if (target & kLearntToken)
      slot.targets[first + i] = static_cast<std::int32_t>(target & ~kLearntToken);
  }
}

}  // namespace aloft

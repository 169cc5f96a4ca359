// Sequences as examples of one length: inputs and targets, i32 [batch, length] each. What is
// shorter is padded at its end by input 0 with target kIgnoredTarget: behind a causal model's
// tokens, where none of them sees it.
#pragma once

#include <memory>
#include <vector>

#include "data/array_loader.h"
#include "data/example_source.h"
#include "data/sequences.h"

namespace aloft {

struct SequenceOptions {
  ArrayLoaderOptions order;  // batch, shuffling, place
  std::int64_t length = 1;   // inputs of an example; sequences have at most one token more
  // Where more than 1: micro-batches that a step is made of, which begins at order.position. A
  // third column, f32 [batch], then has in each row the weight of the batch's mean among them, so
  // that the mean of so many weighted means is the mean over all targets of the step:
  //   micro_batches x targets of the batch / targets of the step
  std::int64_t micro_batches = 1;
  bool has_weights = false;  // of 1 where there is no step: for judging
};

class SequenceExamples : public ExampleSource {
 public:
  // `which` of the sequences, each of them with a target. UserError E0530 (order.h);
  // EnvironmentError E0401 where the batches made ahead need more memory than there is.
  SequenceExamples(std::shared_ptr<const Sequences> sequences,
                   std::shared_ptr<const std::vector<std::uint32_t>> which,
                   SequenceOptions options);
  ~SequenceExamples() override;

  const ExampleBatch* next() override;
  std::uint64_t position() const override { return position_; }
  std::uint64_t samples_per_epoch() const override { return which_->size(); }

 private:
  struct Slot;
  bool fill(Slot& slot);
  void fill_row(Slot& slot, std::size_t row, std::size_t sequence) const;
  std::size_t sequence_at(std::uint64_t position, std::uint64_t row) const;
  std::int64_t targets_of_batch(std::uint64_t position) const;
  float next_weight(std::int64_t targets);

  std::shared_ptr<const Sequences> sequences_;
  std::shared_ptr<const std::vector<std::uint32_t>> which_;
  SequenceOptions options_;
  BatchWalk walk_;
  std::uint64_t position_;  // of the consumer
  // Of the prefetch thread: where it is, which micro-batch of a step is next, that step's targets.
  std::uint64_t filling_;
  std::int64_t part_ = 0, targets_of_step_ = 0;
  ExampleBatch batch_;
  std::unique_ptr<Prefetcher<Slot>> prefetcher_;
};

}  // namespace aloft

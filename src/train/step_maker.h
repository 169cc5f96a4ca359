// One training step: its micro-batches, its update, its numbers. An error in the middle of one
// finds out here how much of it is done, and what can be undone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/example_source.h"
#include "frontend/optimizer.h"
#include "run/events.h"
#include "train/runner.h"

namespace aloft {

class StepMaker {
 public:
  // `accumulate` micro-batches a step, of examples of `units` tokens each where a batch does not
  // say how many it has. The optimizer outlives this.
  StepMaker(Optimizer& optimizer, std::int64_t accumulate, std::int64_t units);

  // What a step's numbers say of itself: `tokens` and `time_s` are its own, and what counts over
  // the run (step, skips) is left to the caller. DivergedError E0810 is the caller's to throw.
  struct Made {
    StepDone numbers;
    std::int32_t culprit = -1;  // of give_up_if_hopeless()
  };
  // On a device that works while the host goes on, the next step's first batch is loaded before
  // this step's numbers are read; where it cannot be, the next step says so.
  // `number`: the step's, from 0 on.
  Made make(Runner& runner, ExampleSource& examples, std::int64_t number);
  // Where the data of the next step begin: behind the last step that was made.
  std::uint64_t position() const { return position_; }

  // Where an error has found the state: between steps; in a step, before anything but sums and
  // random numbers has moved; in the update.
  enum class Inside { Nothing, MicroBatches, Update };
  Inside inside() const { return inside_; }
  // The run goes on elsewhere in the data: what was loaded ahead is not issued.
  void drop_loaded() { is_loaded_ = false; }
  // Back to between steps: from between micro-batches, where nothing but the sums and the random
  // numbers has moved.
  void undo_micro_batches();

 private:
  void load(Runner& runner, std::int64_t number, std::int64_t part, const ExampleBatch& batch);
  Runner::Part kind(std::int64_t part) const {
    return part + 1 == accumulate_ ? Runner::Part::Update : Runner::Part::MicroBatch;
  }

  Optimizer& optimizer_;
  std::int64_t accumulate_, units_;
  std::vector<std::string> names_;  // of culprits
  Inside inside_ = Inside::Nothing;
  std::uint64_t position_ = 0;
  // What is loaded and not issued.
  bool is_loaded_ = false;
  std::int64_t loaded_units_ = 0;
  std::array<std::int64_t, 3> random_before_ = {};
};

}  // namespace aloft

// What a training loop says of a step, beside what the step computes: its losses, the scale on
// them, and of each update its rate, the norm of its gradients and whether it was skipped. Noted
// while a function is traced or a step is made eagerly, for who looks on (observe::Session).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "frontend/optimizer.h"

namespace aloft {

// What is said.
enum class LoopWord {
  Loss,        // f32[]: of a micro-batch that is no update
  ScaledLoss,  // of one that a scaler multiplies: before that
  LossScale,   // f32[]: what it is multiplied with
  // Of an update, in this order.
  UpdateLoss,
  UpdateScale,
  Rate,
  Norm,    // of its gradients: unscaled, not clipped
  Finite,  // i32[]: 0 where it was skipped
};

// What of an optimizer counts for an update.
struct UpdatedBy {
  OptimizerSpec spec;
  int micro_batches = 1;
};

// While one lives, it is told of this thread's steps; the innermost alone is.
class LoopTaps {
 public:
  // `by`: of LoopWord::UpdateLoss, with which an update begins; null of the others.
  using Heard = std::function<void(LoopWord word, const Tensor& value, const UpdatedBy* by)>;
  explicit LoopTaps(Heard heard);
  ~LoopTaps();
  LoopTaps(const LoopTaps&) = delete;
  LoopTaps& operator=(const LoopTaps&) = delete;

  static bool is_there();
  static void tell(LoopWord word, const Tensor& value);
  static void tell(const StepResult& update, const Optimizer& by);

 private:
  Heard heard_;
  LoopTaps* outer_;
};

// The name of the tap that shows it in a program: "loop:3.4", of the fourth that is said there.
std::string loop_tap(std::size_t number, LoopWord word);
bool is_loop_tap(std::string_view name);
LoopWord word_of_loop_tap(std::string_view name);
// Which of those in its program it is.
std::size_t number_of_loop_tap(std::string_view name);

}  // namespace aloft

// apex's amp.scale_loss: a loss times its loss scale until the end of a block, and gradients that
// are divided by it then.
//
//   {
//     auto scaled_loss = amp::scale_loss(loss, optimizer);
//     scaled_loss.backward();
//   }
//   amp::step(optimizer);
//
// In one line: amp::scale_loss(loss, optimizer).backward(). Eager alone; a compiled step is
// minimize(). Where the block ends the gradients that its backward() left for the optimizers are
// divided, in f32, added to what blocks before it have left there since the last step, and the
// loss's scale moves. Whether all were finite is decided on the device, and waits for the step.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "frontend/optimizer.h"

namespace aloft::nn {
class Module;
}

namespace aloft::amp {

// The further arguments of apex's scale_loss, with its defaults.
struct ScaleLossOptions {
  std::size_t loss_id = 0;            // which of the losses that Options::num_losses counts
  const nn::Module* model = nullptr;  // apex keeps the word for later; nothing
  // The gradients stay multiplied: a block of the same loss that comes before the step, with those
  // of its own backward() added, divides them.
  bool delay_unscale = false;
  // The scale does not move here, but at the end of the next block of this loss, which tells it of
  // both; a step behind it is skipped all the same.
  bool delay_overflow_check = false;
};

// One optimizer, or several: all for which the loss leaves gradients.
class Optimizers {
 public:
  Optimizers(const Optimizer& one);                      // NOLINT: one is a list
  Optimizers(std::initializer_list<Optimizer> all);      // in their order
  Optimizers(std::vector<Optimizer> all);                // NOLINT: a list is one
  std::vector<Optimizer>::const_iterator begin() const;  // the first
  std::vector<Optimizer>::const_iterator end() const;    // behind the last

 private:
  std::vector<Optimizer> all_;
};

// A loss times its scale, f32[]: a tensor, and the block in which it is one.
class ScaledLoss : public Tensor {
 public:
  // As scale_loss() makes it.
  ScaledLoss(const Tensor& loss, Optimizers optimizers, const ScaleLossOptions& options);
  // end(), where nobody has called it. It throws what end() throws; where an exception leaves the
  // block, it drops the optimizers' gradients instead, so that a loop may begin its step anew.
  ~ScaledLoss() noexcept(false);
  ScaledLoss(const ScaledLoss&) = delete;
  ScaledLoss& operator=(const ScaledLoss&) = delete;

  // Ends the block here. UserError E0808 where no backward() left a gradient for any of the
  // optimizers, or one left that of a loss that was not scaled, or the scale has moved since the
  // block began: their gradients are dropped.
  void end();

 private:
  void check_optimizers() const;
  void check_gradients(const Optimizer& optimizer) const;
  void divide();
  void drop() noexcept;

  Optimizers optimizers_;
  ScaleLossOptions options_;
  Tensor loss_;
  int exceptions_;  // that were on their way when the block began
  bool is_open_ = false;
};

// UserError E0808 where gradients are left that no block has divided, behind a block with
// delay_unscale of another loss or whose scale has moved since, within another block of an
// optimizer, for optimizers of different scales, for one that sums micro-batches, and for one
// without a loss scale that amp::initialize has not made; E0814 for a loss_id that there is not;
// E0305 in a function that is being traced.
[[nodiscard]] ScaledLoss scale_loss(const Tensor& loss, const Optimizers& optimizers,
                                    const ScaleLossOptions& options = {});

// One update from the gradients that blocks left for the optimizer's parameters, which are gone
// then; skipped where one of them was not finite. UserError E0808 where there are none, where they
// are multiplied still, as those that a block of another optimizer or another scaler left, or
// within a block; DivergedError E0810 where a loss's scale has fallen too often in a row.
StepResult step(Optimizer& optimizer);
// The same, with the loss that StepResult tells of.
StepResult step(const Tensor& loss, Optimizer& optimizer);

}  // namespace aloft::amp

// MindSpore's loss scalers: those of its functional loops, and the managers that its training
// networks are given. All are the one rule of scalar/loss_scaler.h.
//
//   amp::DynamicLossScaler scaler(1024, 2, 50);
//   auto step = compile([&](Tensor x, Tensor label) {
//     const Tensor loss = cross_entropy(net(x), label);
//     const auto gradients = scaler.unscale(gradients_of(scaler.scale(loss)));
//     ...
//     scaler.adjust(amp::all_finite(gradients));
//   });
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/optimizer.h"

namespace aloft::amp {

// mindspore.amp.all_finite: bool[], whether every element of every tensor is finite. UserError
// E0302 without a tensor.
Tensor all_finite(const std::vector<Tensor>& tensors);

// mindspore.amp.StaticLossScaler and DynamicLossScaler, which differ in adjust() alone. In both
// modes.
class LossScaler {
 public:
  // x times the scale, in the type of x.
  Tensor scale(const Tensor& x) const;
  std::vector<Tensor> scale(const std::vector<Tensor>& all) const;
  // x times one over the scale, in the type of x: a gradient in a low type may lose what it has.
  Tensor unscale(const Tensor& x) const;
  std::vector<Tensor> unscale(const std::vector<Tensor>& all) const;
  // The next scale, by whether the gradients of a step (bool[] or i32[]) were finite. Whether it
  // may move: false of a static one.
  bool adjust(const Tensor& grads_finite);
  // As it is now.
  double scale_value() const;

 protected:
  explicit LossScaler(const scalar::ScalerRule& rule);  // UserError E0814: a number out of range

 private:
  Tensor scaled(const Tensor& x, bool inverse) const;

  scalar::ScalerRule rule_;
  ScalerVariables state_;
};

// One scale for good.
class StaticLossScaler : public LossScaler {
 public:
  // UserError E0814 unless it is 1 or more.
  explicit StaticLossScaler(double scale_value);
};

// Times scale_factor after scale_window finite steps in a row, over it behind one that was not, at
// least 1.
class DynamicLossScaler : public LossScaler {
 public:
  // UserError E0814 unless the scale is 1 or more, the factor above 1, the window 1 or more.
  DynamicLossScaler(double scale_value, double scale_factor, std::int64_t scale_window);
};

// mindspore.amp.FixedLossScaleManager. rule() is what an Optimizer is made with.
class FixedLossScaleManager {
 public:
  // UserError E0814 unless the scale is 1 or more, or where overflows are to be applied: here no
  // step with a gradient that is not finite is.
  explicit FixedLossScaleManager(double loss_scale = 128, bool drop_overflow_update = true);
  double get_loss_scale() const { return rule_.init; }                    // for good
  bool get_drop_overflow_update() const { return true; }                  // always
  void update_loss_scale(bool overflow) { static_cast<void>(overflow); }  // nothing: it is fixed
  const scalar::ScalerRule& rule() const { return rule_; }                // for an Optimizer

 private:
  scalar::ScalerRule rule_;
};

// mindspore.amp.DynamicLossScaleManager: on the host, as there; or as the rule() of an Optimizer,
// on the device.
class DynamicLossScaleManager {
 public:
  // UserError E0814 as of DynamicLossScaler.
  explicit DynamicLossScaleManager(double init_loss_scale = 16777216, double scale_factor = 2,
                                   std::int64_t scale_window = 2000);
  double get_loss_scale() const { return state_.scale; }  // of the next step
  bool get_drop_overflow_update() const { return true; }  // always
  // Behind a step. DivergedError E0810 behind the 1,001st overflow in a row.
  void update_loss_scale(bool overflow);
  const scalar::ScalerRule& rule() const { return rule_; }  // for an Optimizer

 private:
  scalar::ScalerRule rule_;
  scalar::ScalerState state_;
};

}  // namespace aloft::amp

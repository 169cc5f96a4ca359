// mindspore.nn.DynamicLossScaleUpdateCell and FixedLossScaleUpdateCell: the scale that a step of
// the loop's own is told of overflows. Thin forms of the loss scalers (frontend/loss_scalers.h),
// which scale and unscale.
#pragma once

#include <cstdint>

#include "frontend/loss_scalers.h"

namespace aloft::ms {

// Times scale_factor behind scale_window calls in a row without overflow, over it behind one with,
// at least 1. In both modes.
class DynamicLossScaleUpdateCell : public amp::DynamicLossScaler {
 public:
  // UserError E0814 as of amp::DynamicLossScaler.
  DynamicLossScaleUpdateCell(double loss_scale_value, double scale_factor,
                             std::int64_t scale_window);
  // That it began with, as there; scale_value() is that of now.
  double get_loss_scale() const { return first_; }
  // Behind a step: whether a gradient was not finite, bool[], which it gives back. UserError E0803
  // where it is anything else.
  Tensor operator()(const Tensor& overflow);

 private:
  double first_;
};

// One scale for good.
class FixedLossScaleUpdateCell : public amp::StaticLossScaler {
 public:
  // UserError E0814 unless it is 1 or more.
  explicit FixedLossScaleUpdateCell(double loss_scale_value);
  double get_loss_scale() const { return first_; }                      // for good
  Tensor operator()(const Tensor& overflow) const { return overflow; }  // nothing moves

 private:
  double first_;
};

}  // namespace aloft::ms

#include "mindspore/update_cells.h"

#include "base/error.h"
#include "ops/cast.h"
#include "ops/compare.h"

namespace aloft::ms {

DynamicLossScaleUpdateCell::DynamicLossScaleUpdateCell(double loss_scale_value, double scale_factor,
                                                       std::int64_t scale_window)
    : amp::DynamicLossScaler(loss_scale_value, scale_factor, scale_window),
      first_(loss_scale_value) {}

Tensor DynamicLossScaleUpdateCell::operator()(const Tensor& overflow) {
  if (overflow.dtype() != DType::Bool || overflow.rank() != 0)
    throw UserError("E0803", "DynamicLossScaleUpdateCell is told of an overflow by one bool")
        .saw(overflow.type().str())
        .advice("logical_not(all_finite(gradients)); of a number x: not_equal(x, 0)");
  adjust(equal(cast(overflow, DType::I32), 0));
  return overflow;
}

FixedLossScaleUpdateCell::FixedLossScaleUpdateCell(double loss_scale_value)
    : amp::StaticLossScaler(loss_scale_value), first_(loss_scale_value) {}

}  // namespace aloft::ms

// A dense array seen around one axis: [outer, length, inner]. The outermost dimension may be
// symbolic, whichever of outer and length it falls into.
#pragma once

#include "runtime/kernel.h"

namespace aloft::cpu {

struct AxisView {
  Extent outer, length;
  std::int64_t inner = 1;

  AxisView() = default;
  AxisView(const Shape& shape, std::int64_t named_axis, const CallSpec& call) {
    const int axis = normal_axis(named_axis, shape.rank());
    Dim before = 1;
    for (int d = 0; d < axis; ++d) before = before * shape[d];
    outer = extent_of(before, call);
    length = extent_of(shape[axis], call);
    for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d].max();
  }
};

// Most axes that kernels with fixed tables of axes take.
inline constexpr int kMaxAxes = 8;
inline std::optional<Refusal> at_most_max_axes(const CallSpec& call) {
  if (call.in[0].shape.rank() > kMaxAxes) return Refusal{"more than 8 axes"};
  return std::nullopt;
}

}  // namespace aloft::cpu

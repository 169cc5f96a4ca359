// x [N, C, ...] as planes: the positions of one channel of one example, which lie side by side.
// What norms over channels go by.
#pragma once

#include <algorithm>

#include "backends/cpu/rows/channel_sweeps.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

namespace aloft::cpu {

struct Planes {
  DType type;
  std::int64_t channels, plane = 1;  // plane: positions of a channel
  Extent examples;
  std::int64_t most_examples;
  ChannelSweeps sweeps;

  Planes(const TensorType& x, const CallSpec& call)
      : type(x.dtype),
        channels(x.shape[1].max()),
        examples(extent_of(x.shape[0], call)),
        most_examples(x.shape[0].max()),
        sweeps(channel_sweeps(x.dtype)) {
    for (int d = 2; d < x.shape.rank(); ++d) plane *= x.shape[d].max();
  }
};

// Element c of operand i, or `missing` where the call has none.
inline double parameter(const CallSpec& call, const RunArgs& args, std::size_t i, std::int64_t c,
                        double missing = 0) {
  if (i >= call.in.size()) return missing;
  const DType t = call.in[i].dtype;
  double buffer;
  return *open_f64(t, at(static_cast<const void*>(args.in[i]), c, t), &buffer, 1);
}
// Sets element c of output i.
inline void set_result(const CallSpec& call, const RunArgs& args, std::size_t i, std::int64_t c,
                       double value) {
  const DType t = call.out[i].dtype;
  close_f64(t, &value, at(args.out[i], c, t), 1);
}

}  // namespace aloft::cpu

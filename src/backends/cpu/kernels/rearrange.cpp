// flip; roll, tile and repeat run through their bodies.
#include "ops/rearrange.h"

#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"

namespace aloft::cpu {
namespace {

class Flip : public Prepared {
 public:
  explicit Flip(const CallSpec& call)
      : view_(call.in[0].shape, from_attrs<FlipAttrs>(call.attrs).axis, call),
        size_(size_of(call.in[0].dtype)) {}

  void run(const RunArgs& args) const override {
    const std::int64_t n = view_.length.at(args.symbols);
    const std::size_t bytes = view_.inner * size_;
    const auto* in = static_cast<const char*>(args.in[0]);
    auto* out = static_cast<char*>(args.out[0]);
    parallel_for(view_.outer.at(args.symbols) * n, static_cast<std::int64_t>(bytes / 8 + 2),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t)
                     std::memcpy(out + t * bytes, in + (t / n * n + n - 1 - t % n) * bytes, bytes);
                 });
  }

 private:
  AxisView view_;
  std::size_t size_;
};

}  // namespace

std::vector<Kernel> rearrange_kernels() { return {{"cpu.flip", "flip", always, prepare_as<Flip>}}; }

}  // namespace aloft::cpu

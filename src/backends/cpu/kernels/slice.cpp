// slice: whole runs where the step is 1, else element by element of the axis.
#include "ops/slice.h"

#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"

namespace aloft::cpu {
namespace {

class Slice : public Prepared {
 public:
  explicit Slice(const CallSpec& call)
      : attrs_(from_attrs<SliceAttrs>(call.attrs)),
        view_(call.in[0].shape, attrs_.axis, call),
        bytes_(view_.inner * static_cast<std::int64_t>(size_of(call.in[0].dtype))) {
    range_ = range_of(attrs_, view_.length.factor);
  }

  void run(const RunArgs& args) const override {
    const std::int64_t n = view_.length.factor;
    const auto* in = static_cast<const char*>(args.in[0]) + range_.first * bytes_;
    auto* out = static_cast<char*>(args.out[0]);
    // Runs of the output, each dense in the input too.
    const std::int64_t run = attrs_.step == 1 ? range_.count : 1;
    const std::int64_t runs = attrs_.step == 1 ? 1 : range_.count;
    parallel_for(view_.outer.at(args.symbols) * runs, run * bytes_ / 8 + 4,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t) {
                     const std::int64_t outer = t / runs, k = t % runs;
                     std::memcpy(out + t * run * bytes_,
                                 in + (outer * n + k * attrs_.step) * bytes_, run * bytes_);
                   }
                 });
  }

 private:
  SliceAttrs attrs_;
  AxisView view_;
  SliceRange range_;
  std::int64_t bytes_;  // of one element of the axis
};

}  // namespace

std::vector<Kernel> slice_kernels() { return {{"cpu.slice", "slice", always, prepare_as<Slice>}}; }

}  // namespace aloft::cpu

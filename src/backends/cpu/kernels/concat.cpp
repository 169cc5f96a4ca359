// concat: one copy a part and outer index. stack and split run through their bodies.
#include "ops/concat.h"

#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"

namespace aloft::cpu {
namespace {

class Concat : public Prepared {
 public:
  explicit Concat(const CallSpec& call)
      : out_(call.out[0].shape, from_attrs<ConcatAttrs>(call.attrs).axis, call),
        bytes_(out_.inner * static_cast<std::int64_t>(size_of(call.out[0].dtype))) {
    const std::int64_t axis = from_attrs<ConcatAttrs>(call.attrs).axis;
    std::int64_t before = 0;
    for (const TensorType& t : call.in) {
      parts_.push_back({before, AxisView(t.shape, axis, call).length.factor});
      before += parts_.back().length;
    }
  }

  void run(const RunArgs& args) const override {
    const std::int64_t m = out_.length.factor;
    const auto count = static_cast<std::int64_t>(parts_.size());
    auto* out = static_cast<char*>(args.out[0]);
    parallel_for(out_.outer.at(args.symbols) * count, m * bytes_ / 8 / count + 4,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t) {
                     const std::int64_t outer = t / count;
                     const Part& part = parts_[t % count];
                     const auto* in = static_cast<const char*>(args.in[t % count]);
                     std::memcpy(out + (outer * m + part.before) * bytes_,
                                 in + outer * part.length * bytes_, part.length * bytes_);
                   }
                 });
  }

 private:
  struct Part {
    std::int64_t before, length;
  };
  AxisView out_;
  std::int64_t bytes_;  // of one element of the axis
  std::vector<Part> parts_;
};

}  // namespace

std::vector<Kernel> concat_kernels() {
  return {{"cpu.concat", "concat", always, prepare_as<Concat>}};
}

}  // namespace aloft::cpu

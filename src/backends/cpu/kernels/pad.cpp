// pad: fills, then puts the elements into their places.
#include "ops/pad.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {
namespace {

class Pad : public Prepared {
 public:
  explicit Pad(const CallSpec& call)
      : attrs_(from_attrs<PadAttrs>(call.attrs)),
        in_(call.in[0].shape, attrs_.axis, call),
        out_(call.out[0].shape, attrs_.axis, call),
        dtype_(call.out[0].dtype) {
    close_f64(dtype_, &attrs_.value, pattern_, 1);
  }

  void run(const RunArgs& args) const override {
    const std::int64_t n = in_.length.factor, m = out_.length.factor;
    const auto size = static_cast<std::int64_t>(size_of(dtype_));
    const std::int64_t bytes = in_.inner * size;
    const auto* in = static_cast<const char*>(args.in[0]);
    auto* out = static_cast<char*>(args.out[0]);
    parallel_for(in_.outer.at(args.symbols), m * in_.inner,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t o = begin; o < end; ++o) {
                     char* row = out + o * m * bytes;
                     fill(row, attrs_.before * in_.inner);
                     char* to = row + attrs_.before * bytes;
                     for (std::int64_t k = 0; k < n; ++k) {
                       std::memcpy(to, in + (o * n + k) * bytes, bytes);
                       to += bytes;
                       if (k + 1 == n) break;
                       fill(to, attrs_.between * in_.inner);
                       to += attrs_.between * bytes;
                     }
                     fill(to, attrs_.after * in_.inner);
                   }
                 });
  }

 private:
  // n elements of the padding value.
  void fill(char* p, std::int64_t n) const {
    switch (size_of(dtype_)) {
      case 1:
        return fill_as<std::uint8_t>(p, n);
      case 2:
        return fill_as<std::uint16_t>(p, n);
      case 4:
        return fill_as<std::uint32_t>(p, n);
      default:
        return fill_as<std::uint64_t>(p, n);
    }
  }
  template <class T>
  void fill_as(char* p, std::int64_t n) const {
    T value;
    std::memcpy(&value, pattern_, sizeof value);
    std::fill_n(reinterpret_cast<T*>(p), n, value);
  }

  PadAttrs attrs_;
  AxisView in_, out_;
  DType dtype_;
  alignas(8) char pattern_[8] = {};
};

}  // namespace

std::vector<Kernel> pad_kernels() { return {{"cpu.pad", "pad", always, prepare_as<Pad>}}; }

}  // namespace aloft::cpu

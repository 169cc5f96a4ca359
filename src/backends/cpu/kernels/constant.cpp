// full and iota.
#include "ops/constant.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/vectors/integer_tiles.h"
#include "backends/cpu/vectors/tiles.h"
#include "scalar/integers.h"

namespace aloft::cpu {
namespace {

class Full : public Prepared {
 public:
  explicit Full(const CallSpec& call)
      : extent_(extent_of(call.out[0].shape.numel(), call)), size_(size_of(call.out[0].dtype)) {
    const auto a = from_attrs<FullAttrs>(call.attrs);
    // Eight bytes of elements that all hold the value.
    char element[8], run[8];
    close_f64(a.dtype, &a.value, element, 1);
    for (std::size_t i = 0; i < sizeof run; ++i) run[i] = element[i % size_];
    std::memcpy(&pattern_, run, sizeof run);
  }

  void run(const RunArgs& args) const override {
    const auto bytes = extent_.at(args.symbols) * static_cast<std::int64_t>(size_);
    auto* out = static_cast<char*>(args.out[0]);
    parallel_for(bytes / 8, 1, [&](std::int64_t begin, std::int64_t end) {
      auto* words = reinterpret_cast<std::uint64_t*>(out);
      std::fill(words + begin, words + end, pattern_);
    });
    std::memcpy(out + bytes / 8 * 8, &pattern_, bytes % 8);
  }

 private:
  Extent extent_;
  std::size_t size_;
  std::uint64_t pattern_;
};

class Iota : public Prepared {
 public:
  explicit Iota(const CallSpec& call) : attrs_(from_attrs<IotaAttrs>(call.attrs)) {}

  void run(const RunArgs& args) const override {
    parallel_for(attrs_.count, 2, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) std::int64_t tile[kTile];
      alignas(64) double wide[kTile];
      for (std::int64_t i = begin; i < end; i += kTile) {
        const std::int64_t n = std::min(kTile, end - i);
        for (std::int64_t k = 0; k < n; ++k)
          tile[k] = scalar::wrapping_add(attrs_.start, scalar::wrapping_mul(i + k, attrs_.step));
        void* to = at(args.out[0], i, attrs_.dtype);
        if (is_float(attrs_.dtype))
          close_f64(attrs_.dtype, open_f64(DType::I64, tile, wide, n), to, n);
        else
          close_i64(attrs_.dtype, tile, to, n);
      }
    });
  }

 private:
  IotaAttrs attrs_;
};

}  // namespace

std::vector<Kernel> constant_kernels() {
  return {{"cpu.full", "full", always, prepare_as<Full>},
          {"cpu.iota", "iota", always, prepare_as<Iota>}};
}

}  // namespace aloft::cpu

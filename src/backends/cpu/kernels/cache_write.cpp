// cache_write: in place it copies the new rows only.
#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "ops/declared.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

class CacheWrite : public Prepared {
 public:
  explicit CacheWrite(const CallSpec& call)
      : batch_(extent_of(call.in[0].shape[0], call)),
        most_(call.in[0].shape[1].max()),
        rows_(call.in[1].shape[1].max()) {
    const Shape& s = call.in[0].shape;
    row_bytes_ = static_cast<std::int64_t>(size_of(call.in[0].dtype));
    for (int i = 2; i < s.rank(); ++i) row_bytes_ *= s[i].max();
  }

  void run(const RunArgs& args) const override {
    const std::int64_t position = *static_cast<const std::int32_t*>(args.in[2]);
    const std::int64_t batch = batch_.at(args.symbols);
    auto* out = static_cast<char*>(args.out[0]);
    const auto* cache = static_cast<const char*>(args.in[0]);
    const auto* rows = static_cast<const char*>(args.in[1]);
    const std::int64_t bytes = most_ * row_bytes_;
    if (out != cache)
      parallel_for(batch * bytes, 1, [&](std::int64_t begin, std::int64_t end) {
        std::memcpy(out + begin, cache + begin, static_cast<std::size_t>(end - begin));
      });
    // Rows outside the cache are dropped.
    const std::int64_t first = std::max<std::int64_t>(0, -position);
    const std::int64_t last = std::min(rows_, most_ - position);
    if (last <= first) return;
    for (std::int64_t b = 0; b < batch; ++b)
      std::memcpy(out + b * bytes + (position + first) * row_bytes_,
                  rows + (b * rows_ + first) * row_bytes_,
                  static_cast<std::size_t>((last - first) * row_bytes_));
  }

 private:
  Extent batch_;
  std::int64_t most_, rows_, row_bytes_;
};

}  // namespace

std::vector<Kernel> cache_write_kernels() {
  return {{"cpu.cache_write", "cache_write", always, prepare_as<CacheWrite>, [](const CallSpec&) {
             return std::vector<std::pair<int, int>>{{0, 0}};
           }}};
}

}  // namespace aloft::cpu

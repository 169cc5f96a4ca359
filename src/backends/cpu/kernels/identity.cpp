// identity and detach: copies, which vanish where input and output may share a buffer.
#include <cstring>

#include "backends/cpu/elements/elementwise.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

class Copy : public Prepared, public TileOp {
 public:
  explicit Copy(const CallSpec& call)
      : numel_(extent_of(call.out[0].shape.numel(), call)),
        size_(static_cast<std::int64_t>(size_of(call.out[0].dtype))) {}

  void run(const RunArgs& args) const override {
    const auto* in = static_cast<const char*>(args.in[0]);
    auto* out = static_cast<char*>(args.out[0]);
    if (in == out) return;
    parallel_for(numel_.at(args.symbols) * size_, 1, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(out + begin, in + begin, end - begin);
    });
  }

  const LoopPart* loop_part() const override { return this; }
  ElementwiseCode tile_code() const override { return copy_code(); }

 private:
  Extent numel_;
  std::int64_t size_;
};
std::vector<std::pair<int, int>> in_place(const CallSpec&) { return {{0, 0}}; }

}  // namespace

std::vector<Kernel> identity_kernels() {
  return {{"cpu.identity", "identity", always, prepare_as<Copy>, in_place},
          {"cpu.detach", "detach", always, prepare_as<Copy>, in_place}};
}

}  // namespace aloft::cpu

// broadcast and element_count.
#include "ops/broadcast.h"

#include <cstring>

#include "backends/cpu/elements/operands.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"

namespace aloft::cpu {
namespace {

class Broadcast : public Prepared {
 public:
  explicit Broadcast(const CallSpec& call) : operands_(call), dtype_(call.out[0].dtype) {}

  void run(const RunArgs& args) const override {
    parallel_for(operands_.numel(args), 1, [&](std::int64_t begin, std::int64_t end) {
      Reader reader(operands_, args);
      while (begin < end) {
        const std::int64_t n = operands_.tile_at(begin, end);
        std::memcpy(at(args.out[0], begin, dtype_), reader.raw(0, begin, n), n * size_of(dtype_));
        begin += n;
      }
    });
  }

 private:
  Operands operands_;
  DType dtype_;
};

class ElementCount : public Prepared {
 public:
  explicit ElementCount(const CallSpec& call) : dtype_(call.out[0].dtype) {
    const auto a = from_attrs<ElementCountAttrs>(call.attrs);
    const Shape& shape = call.in[0].shape;
    Dim product = 1;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      bool counted = a.axes.empty();
      for (std::int64_t named : a.axes)
        counted = counted || normal_axis(named, shape.rank()) == axis;
      if (counted) product = product * shape[axis];
    }
    count_ = extent_of(product, call);
  }

  void run(const RunArgs& args) const override {
    const auto count = static_cast<double>(count_.at(args.symbols));
    close_f64(dtype_, &count, args.out[0], 1);
  }

 private:
  Extent count_;
  DType dtype_;
};

}  // namespace

std::vector<Kernel> broadcast_kernels() {
  return {{"cpu.broadcast", "broadcast", always, prepare_as<Broadcast>},
          {"cpu.element_count", "element_count", always, prepare_as<ElementCount>}};
}

}  // namespace aloft::cpu

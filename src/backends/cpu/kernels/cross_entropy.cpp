// cross_entropy and its gradient: each row of logits comes from memory once, nothing as large as
// the logits is kept, and the gradient may overwrite them. The gradient finds a row's log-sum-exp
// again while the row is in the caches: kept, it would have to be kept in two numbers a row.
#include "ops/cross_entropy.h"

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/cross_entropy_loss.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

std::optional<Refusal> accepts(const CallSpec& call) {
  if (!has_tiles(call.in[0].dtype)) return Refusal{"logits in f64"};
  for (std::size_t i = 2; i < call.in.size(); ++i)
    if (call.in[i].dtype != DType::F32) return Refusal{"statistics that are not f32"};
  return std::nullopt;
}

class Rows : public Prepared {
 public:
  explicit Rows(const CallSpec& call)
      : logits_(call.in[0].dtype),
        rows_(extent_of(call.in[1].shape.numel(), call)),
        most_(call.in[1].shape.max_numel()),
        classes_(call.in[0].shape[-1].max()),
        loss_(from_attrs<CrossEntropyAttrs>(call.attrs), logits_, call.in[1].dtype, classes_) {}

 protected:
  // f(row, its index), in parallel.
  template <class F>
  void each_row(const RunArgs& args, const F& f) const {
    parallel_for(rows_.at(args.symbols), 2 * classes_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        f(loss_.row(at(static_cast<const void*>(args.in[0]), i * classes_, logits_), args.in[1], i),
          i);
    });
  }
  double divisor(const RunArgs& args) const {
    return loss_.divisor(args.in[1], rows_.at(args.symbols));
  }

  DType logits_;
  Extent rows_;
  std::int64_t most_, classes_;
  CrossEntropyLoss loss_;
};

class CrossEntropy : public Rows {
 public:
  using Rows::Rows;
  std::size_t scratch_bytes() const override { return most_ * sizeof(double); }

  void run(const RunArgs& args) const override {
    auto* losses = static_cast<double*>(args.scratch);
    each_row(args, [&](const CrossEntropyLoss::Row& row, std::int64_t i) {
      losses[i] = loss_.loss(row);
    });
    double sum = 0;
    for (std::int64_t i = 0; i < rows_.at(args.symbols); ++i) sum += losses[i];
    *static_cast<float*>(args.out[0]) = static_cast<float>(sum / divisor(args));
  }
};

class CrossEntropyGrad : public Rows {
 public:
  using Rows::Rows;

  void run(const RunArgs& args) const override {
    const double dloss = *static_cast<const float*>(args.in[2]);
    const auto scale = static_cast<float>(dloss / divisor(args));
    each_row(args, [&](const CrossEntropyLoss::Row& row, std::int64_t i) {
      loss_.gradient(row, scale, at(args.out[0], i * classes_, logits_));
    });
  }
};

std::vector<std::pair<int, int>> over_logits(const CallSpec&) { return {{0, 0}}; }

}  // namespace

std::vector<Kernel> cross_entropy_kernels() {
  return {{"cpu.cross_entropy", "cross_entropy", accepts, prepare_as<CrossEntropy>},
          {"cpu.cross_entropy_grad", "cross_entropy_grad", accepts, prepare_as<CrossEntropyGrad>,
           over_logits}};
}

}  // namespace aloft::cpu

// cross_entropy and its gradient: each row of logits is read once, nothing as large as the logits
// is kept, and the gradient may overwrite them.
#include "ops/cross_entropy.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/integers.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows/cross_entropy_rows.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::optional<Refusal> accepts(const CallSpec& call) {
  if (!has_tiles(call.in[0].dtype)) return Refusal{"logits in f64"};
  for (std::size_t i = 2; i < call.in.size(); ++i)
    if (call.in[i].dtype != DType::F32) return Refusal{"statistics that are not f32"};
  return std::nullopt;
}

// What the loss and its gradient share: the rows, their targets and the divisor.
class Rows {
 public:
  explicit Rows(const CallSpec& call)
      : attrs_(from_attrs<CrossEntropyAttrs>(call.attrs)),
        logits_(call.in[0].dtype),
        targets_(call.in[1].dtype),
        rows_(extent_of(call.in[1].shape.numel(), call)),
        most_(call.in[1].shape.max_numel()),
        classes_(call.in[0].shape[-1].max()),
        sweeps_(cross_entropy_rows(logits_, logits_)) {}

 protected:
  std::int64_t count(const RunArgs& args) const { return rows_.at(args.symbols); }
  std::int64_t target(const RunArgs& args, std::int64_t row) const {
    return integer_at(targets_, args.in[1], row);
  }
  bool counts(std::int64_t target) const { return target != attrs_.ignore_index; }
  bool is_class(std::int64_t target) const { return target >= 0 && target < classes_; }
  float logit(const void* row, std::int64_t i) const {
    float buffer;
    return *open_f32(logits_, at(row, i, logits_), &buffer, 1);
  }
  // What the sum of the rows' losses is divided by.
  double divisor(const RunArgs& args) const {
    if (attrs_.reduction == kSum) return 1;
    std::int64_t n = 0;
    for (std::int64_t row = 0; row < count(args); ++row) n += counts(target(args, row));
    return static_cast<double>(std::max<std::int64_t>(1, n));
  }

  static constexpr std::string_view kSum = "sum";
  CrossEntropyAttrs attrs_;
  DType logits_, targets_;
  Extent rows_;
  std::int64_t most_, classes_;
  CrossEntropyRows sweeps_;
};

class CrossEntropy : public Prepared, Rows {
 public:
  using Rows::Rows;
  std::size_t scratch_bytes() const override { return most_ * sizeof(double); }

  void run(const RunArgs& args) override {
    const std::int64_t rows = count(args);
    auto* losses = static_cast<double*>(args.scratch);
    parallel_for(rows, 2 * classes_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) losses[row] = one_row(args, row);
    });
    double sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) sum += losses[row];
    *static_cast<float*>(args.out[0]) = static_cast<float>(sum / divisor(args));
  }

 private:
  double one_row(const RunArgs& args, std::int64_t row) const {
    const void* x = at(static_cast<const void*>(args.in[0]), row * classes_, logits_);
    const double smooth = attrs_.label_smoothing;
    double total = 0;
    const double lse = sweeps_.lse(x, classes_, smooth > 0 ? &total : nullptr);
    static_cast<float*>(args.out[1])[row] = static_cast<float>(lse);
    const std::int64_t t = target(args, row);
    if (!counts(t)) return 0;
    if (!is_class(t)) return kNaN;
    double loss = lse - (1 - smooth) * static_cast<double>(logit(x, t));
    if (smooth > 0) loss -= smooth * total / static_cast<double>(classes_);
    return loss;
  }
};

class CrossEntropyGrad : public Prepared, Rows {
 public:
  using Rows::Rows;

  void run(const RunArgs& args) override {
    const double dloss = *static_cast<const float*>(args.in[3]);
    const auto scale = static_cast<float>(dloss / divisor(args));
    parallel_for(count(args), 2 * classes_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) one_row(args, row, scale);
    });
  }

 private:
  void one_row(const RunArgs& args, std::int64_t row, float scale) const {
    const void* x = at(static_cast<const void*>(args.in[0]), row * classes_, logits_);
    void* dx = at(args.out[0], row * classes_, logits_);
    const std::int64_t t = target(args, row);
    if (!counts(t)) {
      std::memset(dx, 0, classes_ * size_of(logits_));
      return;
    }
    const float lse = static_cast<const float*>(args.in[2])[row];
    const double floor = attrs_.label_smoothing / static_cast<double>(classes_);
    if (!is_class(t)) {
      sweeps_.gradient(x, classes_, static_cast<float>(kNaN), 0, 1, dx);
      return;
    }
    // Before the sweep, which may overwrite the logit.
    const double p = std::exp(static_cast<double>(logit(x, t)) - static_cast<double>(lse));
    const auto hit =
        static_cast<float>((p - (1 - attrs_.label_smoothing) - floor) * static_cast<double>(scale));
    sweeps_.gradient(x, classes_, lse, static_cast<float>(floor), scale, dx);
    close_f32(logits_, &hit, at(dx, t, logits_), 1);
  }
};

template <class K>
std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  return std::make_unique<K>(call);
}

std::vector<std::pair<int, int>> over_logits(const CallSpec&) { return {{0, 0}}; }

}  // namespace

std::vector<Kernel> cross_entropy_kernels() {
  return {{"cpu.cross_entropy", "cross_entropy", accepts, prepare<CrossEntropy>},
          {"cpu.cross_entropy_grad", "cross_entropy_grad", accepts, prepare<CrossEntropyGrad>,
           over_logits}};
}

}  // namespace aloft::cpu

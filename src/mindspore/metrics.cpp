#include "mindspore/metrics.h"

#include "base/error.h"
#include "base/text.h"
#include "ops/arg_reduce.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/sort.h"
#include "ops/unary.h"

namespace aloft::ms {
namespace {

// A mean: sums over batches in double, what is summed in a batch in f32.
class Mean : public Metric {
 public:
  void clear() override { sum_ = count_ = 0; }
  double eval() const override { return sum_ / count_; }

 protected:
  void add(double sum, double count) { sum_ += sum, count_ += count; }

 private:
  double sum_ = 0, count_ = 0;
};

class TopK : public Mean {
 public:
  explicit TopK(std::int64_t k) : k_(k) {}
  void update(const EvalBatch& b) override {
    const auto rows = static_cast<double>(b.label.shape().max_numel());
    const Tensor label = cast(b.label, DType::I32);
    if (k_ == 1)
      return add(
          sum(cast(equal(cast(argmax(b.outputs, -1), DType::I32), label), DType::F32)).item(),
          rows);
    const std::int64_t k = std::min(k_, b.outputs.dim(-1).max());
    const Tensor best = cast(top_k(b.outputs, k)[1], DType::I32);
    const Tensor wanted = reshape(label, Shape{label.dim(0), 1});
    add(sum(cast(equal(best, wanted), DType::F32)).item(), rows);
  }

 private:
  std::int64_t k_;
};

class Loss : public Mean {
 public:
  void update(const EvalBatch& b) override {
    if (!b.loss.is_defined())
      throw UserError("E0841", "the metric \"loss\" needs a model with a loss")
          .advice("give Model a loss, or leave the metric out");
    add(b.loss.item(), 1);
  }
};

class Deviation : public Mean {
 public:
  explicit Deviation(Tensor (*of)(Operand)) : of_(of) {}
  void update(const EvalBatch& b) override {
    const Tensor difference = cast(b.outputs, DType::F32) - cast(b.label, DType::F32);
    add(sum(of_(difference)).item(), static_cast<double>(difference.shape().max_numel()));
  }

 private:
  Tensor (*of_)(Operand);
};

struct Kind {
  std::string_view name;
  std::unique_ptr<Metric> (*make)();
};

template <std::int64_t k>
std::unique_ptr<Metric> make_top() {
  return std::make_unique<TopK>(k);
}

constexpr Kind kKinds[] = {
    {"acc", make_top<1>},
    {"accuracy", make_top<1>},
    {"loss", []() -> std::unique_ptr<Metric> { return std::make_unique<Loss>(); }},
    {"mae", []() -> std::unique_ptr<Metric> { return std::make_unique<Deviation>(abs); }},
    {"mse", []() -> std::unique_ptr<Metric> { return std::make_unique<Deviation>(square); }},
    {"top_1_accuracy", make_top<1>},
    {"top_5_accuracy", make_top<5>},
};

}  // namespace

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

std::unique_ptr<Metric> get_metric_fn(std::string_view name) {
  for (const Kind& kind : kKinds)
    if (kind.name == name) return kind.make();
  throw UserError("E0841", "there is no metric of that name")
      .saw(in_quotes(name))
      .need("one of " + join(metric_names(), ", ") + "; or a Metric of your own");
}

}  // namespace aloft::ms

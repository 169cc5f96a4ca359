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
  double eval() const override {
    if (count_ == 0)
      throw UserError("E0841", "a metric has measured nothing")
          .saw("eval() behind clear(), without a row in between")
          .need("update() with a batch first");
    return sum_ / count_;
  }

 protected:
  void add(double sum, double count) { sum_ += sum, count_ += count; }

 private:
  double sum_ = 0, count_ = 0;
};

// Labels that broadcast to the outputs would be measured as well, and give a wrong number.
[[noreturn]] void refuse_shapes(const EvalBatch& b, std::string_view need) {
  throw UserError("E0841", "the labels do not fit the outputs that a metric measures")
      .saw("outputs " + b.outputs.type().str() + ", labels " + b.label.type().str())
      .need(need);
}

// Outputs [rows, C] and the class of each row, i32[rows].
struct Classified {
  Tensor outputs, label;
};

Classified classified(const EvalBatch& b) {
  const Shape outputs = b.outputs.shape(), label = b.label.shape();
  if (outputs.rank() >= 2 && label == outputs)  // one-hot
    return {flatten(b.outputs, 0, -2), flatten(argmax(cast(b.label, DType::F32)))};
  if (outputs.rank() == 2 && label == Shape{outputs[0]})
    return {b.outputs, cast(b.label, DType::I32)};
  refuse_shapes(b,
                "outputs [B, C] with labels [B] of class numbers; or one-hot labels of the "
                "outputs' shape");
}

class TopK : public Mean {
 public:
  explicit TopK(std::int64_t k) : k_(k) {}
  void update(const EvalBatch& b) override {
    const auto [outputs, label] = classified(b);
    const auto rows = static_cast<double>(label.shape().max_numel());
    if (k_ == 1) return add(sum(cast(equal(argmax(outputs), label), DType::F32)).item(), rows);
    const std::int64_t k = std::min(k_, outputs.dim(-1).max());
    const Tensor wanted = reshape(label, Shape{label.dim(0), 1});
    add(sum(cast(equal(top_k(outputs, k)[1], wanted), DType::F32)).item(), rows);
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
    const Shape shape = b.outputs.shape();
    if (b.label.shape().max_numel() != shape.max_numel())
      refuse_shapes(b, "as many labels as outputs");
    const Tensor label = reshape(cast(b.label, DType::F32), shape);
    const Tensor difference = cast(b.outputs, DType::F32) - label;
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

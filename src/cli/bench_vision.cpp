// A convolutional network's training step to be timed: SGD with momentum on made-up images of
// 32 x 32 pixels.
#include <omp.h>

#include "cli/bench_step.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "models/lenet.h"
#include "models/resnet.h"
#include "ops/cross_entropy.h"
#include "optim/sgd.h"
#include "scalar/philox.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kExtent = 32, kClasses = 10, kBatch = 32;

template <class Model>
class VisionBench : public BenchSubject {
 public:
  template <class Config>
  VisionBench(const BenchOptions& o, const Config& config)
      : name_(o.model),
        batch_(o.batch > 0 ? o.batch : kBatch),
        model_(config),
        optimizer_(amp::initialize(model_, optim::Momentum{.lr = 0.01},
                                   o.precision.empty() ? "O0" : o.precision)
                       .second),
        precision_(print_precision(parse_precision(o.precision.empty() ? "O0" : o.precision))),
        programs_(o.threads) {
    const TensorType images{DType::F32, Shape{batch_, config.channels, kExtent, kExtent}};
    const TensorType labels{DType::I32, Shape{batch_}};
    programs_.add("train", {{"images", images}, {"labels", labels}},
                  [&](const std::vector<Tensor>& in) {
                    ModuleScope scope("", model_.policy());
                    const Tensor loss = cross_entropy(model_(in[0]), in[1]);
                    return results::flatten(minimize(loss, optimizer_));
                  });
    programs_.finish();
    float* image = programs_.template input<float>("train", "images");
    for (std::int64_t i = 0; i < images.shape.max_numel(); ++i)
      image[i] = static_cast<float>(scalar::random_bits({1, 0, 0, 0}, i) % 2001) / 1000.0f - 1;
    auto* label = programs_.template input<std::int32_t>("train", "labels");
    for (std::int64_t i = 0; i < batch_; ++i) label[i] = static_cast<std::int32_t>(i % kClasses);
    program_ = programs_.find("train");
    loss_ = programs_.template output<float>("train", "loss");
  }
  Programs& programs() override { return programs_; }
  double step() override {
    programs_.run(program_, {});
    return *loss_;
  }
  json description() const override {
    return {{"model", name_}, {"precision", precision_}, {"batch", batch_}};
  }
  std::string unit() const override { return "images"; }
  std::int64_t units_a_step() const override { return batch_; }

 private:
  std::string name_;
  std::int64_t batch_;
  Model model_;
  Optimizer optimizer_;
  std::string precision_;
  Programs programs_;
  int program_ = -1;
  const float* loss_ = nullptr;
};

}  // namespace

bool is_vision_model(const std::string& model) { return model == "lenet" || model == "resnet18"; }

std::unique_ptr<BenchSubject> open_vision_bench(const BenchOptions& o) {
  if (o.threads > 0) omp_set_num_threads(o.threads);
  if (o.model == "lenet")
    return std::make_unique<VisionBench<models::LeNet>>(o, models::LeNetConfig{});
  return std::make_unique<VisionBench<models::ResNet>>(o, models::ResNetConfig{});
}

}  // namespace aloft::cli

// A convolutional network's training step to be timed: SGD with momentum on made-up images of
// 32 x 32 pixels.
#include "cli/model_bench.h"
#include "models/lenet.h"
#include "models/resnet.h"
#include "ops/cross_entropy.h"
#include "optim/sgd.h"
#include "runtime/threads.h"
#include "scalar/philox.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kExtent = 32, kClasses = 10, kBatch = 32;

template <class Model>
class VisionBench : public ModelBench<Model> {
  using Base = ModelBench<Model>;

 public:
  template <class Config>
  VisionBench(const BenchOptions& o, const Config& config)
      : Base(o, config, optim::Momentum{.lr = 0.01}),
        name_(o.model),
        batch_(o.batch > 0 ? o.batch : kBatch),
        pixels_(batch_ * config.channels * kExtent * kExtent) {
    const TensorType images{DType::F32, Shape{batch_, config.channels, kExtent, kExtent}};
    const TensorType labels{DType::I32, Shape{batch_}};
    this->compile({{"images", images}, {"labels", labels}}, [&](const std::vector<Tensor>& in) {
      ModuleScope scope("", this->model_.policy());
      return cross_entropy(this->model_(in[0]), in[1]);
    });
  }
  void start() override {
    Base::start();
    Programs& programs = this->programs_;
    const auto image = programs.input<float>("train", "images").write(pixels_);
    for (std::int64_t i = 0; i < pixels_; ++i)
      image[i] = static_cast<float>(scalar::random_bits({1, 0, 0, 0}, i) % 2001) / 1000.0f - 1;
    const auto label = programs.input<std::int32_t>("train", "labels").write(batch_);
    for (std::int64_t i = 0; i < batch_; ++i) label[i] = static_cast<std::int32_t>(i % kClasses);
  }
  json description() const override {
    return {{"model", name_}, {"precision", this->precision_}, {"batch", batch_}};
  }
  std::string unit() const override { return "images"; }
  std::int64_t units_a_step() const override { return batch_; }

 private:
  std::string name_;
  std::int64_t batch_, pixels_;
};

}  // namespace

bool is_vision_model(const std::string& model) { return model == "lenet" || model == "resnet18"; }

std::unique_ptr<BenchSubject> open_vision_bench(const BenchOptions& o) {
  for (const auto& [given, name] : {std::pair{o.seq, "--seq"},
                                    {o.layers, "--layers"},
                                    {o.heads, "--heads"},
                                    {o.dim, "--dim"},
                                    {o.vocab, "--vocab"}})
    if (given > 0) refuse_option(o, name);
  if (o.threads > 0) host_threads().set_count(o.threads);
  if (o.model == "lenet")
    return std::make_unique<VisionBench<models::LeNet>>(o, models::LeNetConfig{});
  return std::make_unique<VisionBench<models::ResNet>>(o, models::ResNetConfig{});
}

}  // namespace aloft::cli

// The loops of PyTorch's page of amp examples beside those of torch: the scales, to the bit, and
// the losses and weights of each step, in f32 within 1e-5 of float64, in a low type within what the
// type does to torch itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "backends/cpu/cpu_backend.h"
#include "base/file.h"
#include "base/json.h"
#include "frontend/autocast.h"
#include "frontend/custom_gradient.h"
#include "frontend/eager.h"
#include "frontend/grad_scaler.h"
#include "frontend/left_gradients.h"
#include "frontend/module.h"
#include "frontend/scale_loss.h"
#include "frontend/value_and_grad.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/losses.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/transpose.h"
#include "ops/unary.h"
#include "optim/sgd.h"
#include "parity/parity_row.h"

namespace aloft {
namespace {

using nlohmann::json;

const json& fixture() {
  static const json all = parse_json(read_file("tests/fixtures/amp_examples.json", 1 << 20));
  return all;
}

const auto product = custom_gradient([](const Tensor& a, const Tensor& b) { return matmul(a, b); },
                                     [](const Tensor& gradient, const Tensor& a, const Tensor& b) {
                                       return std::pair{matmul(gradient, transpose(b, {1, 0})),
                                                        matmul(transpose(a, {1, 0}), gradient)};
                                     });
const auto rounded =
    amp::custom_fwd(custom_gradient([](const Tensor& x) { return round(x * 8) / 8; },
                                    [](const Tensor& gradient, const Tensor&) {
                                      EXPECT_EQ(gradient.dtype(), DType::F32);
                                      return gradient * 2;
                                    }),
                    DType::F32);

struct Net : nn::Module {
  explicit Net(bool calls_own) : is_own(calls_own) {}
  bool is_own;
  nn::Linear up{*this, "up", 3, 4}, down{*this, "down", 4, 2};
  Tensor operator()(const Tensor& x) const {
    if (!is_own) return down(tanh(up(x)));
    const Tensor h = product(x, transpose(use(up.weight), {1, 0})) + use(up.bias);
    return down(rounded(tanh(h)));
  }
};

// What a loop of the page has around it.
class Course {
 public:
  explicit Course(const json& c) : is_scaled_(!c.at("scaler").is_null()) {
    if (!c.at("dtype").is_null()) low_ = c.at("dtype") == "float16" ? DType::F16 : DType::BF16;
    for (int k = 0; k < c.at("models"); ++k) {
      nets.push_back(std::make_unique<Net>(c.at("loop") == "own_functions"));
      auto from = fixture().at("starts")[k].get<std::vector<float>>();
      auto at = from.begin();
      for (const VariablePtr& p : nets.back()->parameters()) {
        const auto end = at + p->type.shape.numel().max();
        const std::vector<float> values(at, end);
        p->buffer->write_from(std::as_bytes(std::span(values)));
        at = end;
      }
      optimizers.emplace_back(optim::Sgd{.lr = c.at("rate")}, nets.back()->parameters(),
                              scalar::no_scaler());
    }
    amp::GradScalerOptions o{.enabled = is_scaled_};
    if (is_scaled_) {
      const json& given = c.at("scaler");
      o.init_scale = given.value("init_scale", o.init_scale);
      o.backoff_factor = given.value("backoff_factor", o.backoff_factor);
      o.growth_interval = given.value("growth_interval", o.growth_interval);
    }
    scaler = amp::GradScaler(o);
  }
  // The block of autocast, where there is one.
  std::unique_ptr<amp::autocast> scope() const {
    return low_ ? std::make_unique<amp::autocast>(amp::AutocastOptions{.dtype = *low_}) : nullptr;
  }
  Tensor loss(const Tensor& x, const Tensor& y) {
    const auto block = scope();
    return mse_loss((*nets[0])(x), y);
  }
  void finish() {
    if (is_scaled_) scaler.update();
  }
  std::vector<double> weights() const {
    std::vector<double> all;
    for (const auto& net : nets)
      for (const VariablePtr& p : net->parameters())
        for (const float v : p->to_floats()) all.push_back(static_cast<double>(v));
    return all;
  }

  std::vector<std::unique_ptr<Net>> nets;
  std::vector<Optimizer> optimizers;
  amp::GradScaler scaler;

 private:
  bool is_scaled_;
  std::optional<DType> low_;
};

using Losses = std::vector<Tensor>;
using Loop = std::function<Losses(Course& run, int i, const Tensor& x, const Tensor& y)>;

Losses typical(Course& run, int, const Tensor& x, const Tensor& y) {
  run.optimizers[0].zero_grad();
  const Tensor loss = run.loss(x, y);
  run.scaler.scale(loss).backward();
  run.scaler.step(run.optimizers[0]);
  run.finish();
  return {loss};
}

Losses clipping(Course& run, int, const Tensor& x, const Tensor& y) {
  run.optimizers[0].zero_grad();
  const Tensor loss = run.loss(x, y);
  run.scaler.scale(loss).backward();
  run.scaler.unscale_(run.optimizers[0]);
  clip_grad_norm_(run.nets[0]->parameters(), fixture().at("most_norm"));
  run.scaler.step(run.optimizers[0]);
  run.finish();
  return {loss};
}

Losses accumulation(Course& run, int i, const Tensor& x, const Tensor& y) {
  const int batches = fixture().at("micro_batches");
  const Tensor loss = run.loss(x, y) / batches;
  run.scaler.scale(loss).backward();
  if ((i + 1) % batches == 0) {
    run.scaler.step(run.optimizers[0]);
    run.finish();
    run.optimizers[0].zero_grad();
  }
  return {loss};
}

Losses gradient_penalty(Course& run, int, const Tensor& x, const Tensor& y) {
  run.optimizers[0].zero_grad();
  Tensor loss = run.loss(x, y);
  std::vector<Tensor> gradients =
      gradients_of(run.scaler.scale(loss), run.nets[0]->parameters(), {.create_graph = true});
  for (Tensor& g : gradients) g = g * (1 / run.scaler.get_scale());
  {
    const auto block = run.scope();
    Tensor squares = full({}, 0.0);
    for (const Tensor& g : gradients) squares = squares + sum(square(g));
    loss = loss + sqrt(squares);
  }
  run.scaler.scale(loss).backward();
  run.scaler.step(run.optimizers[0]);
  run.finish();
  return {loss};
}

Losses several(Course& run, int, const Tensor& x, const Tensor& y) {
  for (Optimizer& optimizer : run.optimizers) optimizer.zero_grad();
  Losses losses;
  {
    const auto block = run.scope();
    const Tensor out0 = (*run.nets[0])(x), out1 = (*run.nets[1])(x);
    losses = {mse_loss(2 * out0 + 3 * out1, y), mse_loss(3 * out0 - 5 * out1, y)};
  }
  for (const Tensor& loss : losses) run.scaler.scale(loss).backward();
  run.scaler.unscale_(run.optimizers[0]);
  for (Optimizer& optimizer : run.optimizers) run.scaler.step(optimizer);
  run.finish();
  return losses;
}

const std::map<std::string, Loop> loops = {
    {"typical", typical}, {"clipping", clipping},     {"accumulation", accumulation},
    {"several", several}, {"own_functions", typical}, {"gradient_penalty", gradient_penalty}};

class AmpExamples : public ::testing::TestWithParam<json> {};

// The largest magnitude.
double size_of(const json& values) {
  double most = 0;
  for (const json& v : values) most = std::max(most, std::abs(v.get<double>()));
  return most;
}

TEST_P(AmpExamples, KeepTheCourseOfTorch) {
  use_device(cpu_device());
  const json& c = GetParam();
  Course run(c);
  const auto name = c.at("name").get<std::string>();
  const bool is_low = !c.at("dtype").is_null();
  parity::ParityRow scales("amp", name + ": scales", 0);
  // In f32 within 1e-5 of float64; in a low type within twice torch's largest error of a step.
  double torch_error = 0;
  for (const json& step : c.at("out"))
    for (const char* what : {"torch_weights_error", "torch_losses_error"})
      if (!step.at(what).is_null())
        torch_error = std::max(torch_error, step.at(what).get<double>());
  parity::ParityRow values("amp", name + ": losses and weights", is_low ? 2 * torch_error : 1e-5);
  const Loop& loop = loops.at(c.at("loop"));
  for (int i = 0; i < c.at("steps"); ++i) {
    const json &want = c.at("out")[i], &batch = fixture().at("batches")[i];
    const std::string where = "step " + std::to_string(i);
    const Losses losses = loop(run, i, from_floats(batch.at("x").get<std::vector<float>>(), {8, 3}),
                               from_floats(batch.at("y").get<std::vector<float>>(), {8, 2}));
    scales.see(run.scaler.get_scale(), want.at("scale"), 1, where);
    ASSERT_EQ(losses.size(), want.at("losses").size());
    for (std::size_t k = 0; k < losses.size(); ++k)
      if (want.at("torch_losses_error").is_null())
        EXPECT_FALSE(std::isfinite(losses[k].item())) << where;
      else
        values.see(losses[k].item(), want.at("losses")[k], size_of(want.at("losses")), where);
    const std::vector<double> weights = run.weights();
    ASSERT_EQ(weights.size(), want.at("weights").size());
    for (std::size_t k = 0; k < weights.size(); ++k)
      values.see(weights[k], want.at("weights")[k], size_of(want.at("weights")), where);
  }
}

INSTANTIATE_TEST_SUITE_P(Torch, AmpExamples,
                         ::testing::ValuesIn(fixture().at("cases").begin(),
                                             fixture().at("cases").end()),
                         [](const auto& info) { return info.param.at("name"); });

}  // namespace
}  // namespace aloft

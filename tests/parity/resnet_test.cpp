// ResNet-18 against PyTorch: logits, loss, gradients, running statistics and evaluation of a tiny
// one, read from a state dict with torchvision's names, compiled and op by op.
#include "models/resnet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "models/state_dict.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "optim/sgd.h"
#include "parity/fixture.h"
#include "types/tolerance.h"

namespace aloft::parity {
namespace {

struct Judged {
  Arrays expected = read_arrays("resnet-tiny/expected.safetensors");
  Json own_error = read_json("resnet-tiny/expected.json").at("torch_fp32_error");
  Tensor images() const {
    const HostArray& x = expected.at("x");
    return from_floats({x.values.begin(), x.values.end()}, Shape::of(x.shape));
  }
  Tensor labels() const {
    const HostArray& y = expected.at("labels");
    return from_ints({y.values.begin(), y.values.end()}, Shape::of(y.shape));
  }
  double limit(const std::string& name) const {
    return std::max(1e-5, 2 * own_error.at(name).get<double>());
  }
};

models::ResNetConfig tiny() {
  models::ResNetConfig c;
  c.classes = 7, c.width = 3;
  return c;
}

HostArray host(const Tensor& t, const HostArray& like) {
  HostArray a = like;
  const std::vector<double> v = t.to_vector();
  a.values.assign(v.begin(), v.end());
  return a;
}

HostArray host(const VariablePtr& v, const HostArray& like) {
  HostArray a = like;
  load_bytes(a, v->data);
  return a;
}

// Images and labels to logits, loss and the gradient of every parameter.
std::vector<Tensor> score(const models::ResNet& model, const Tensor& x, const Tensor& labels) {
  const Tensor logits = model(x);
  const Tensor loss = cross_entropy(logits, labels);
  std::vector<Tensor> results{logits, loss}, wrt;
  for (const VariablePtr& p : model.parameters()) wrt.push_back(current_emitter().state(p));
  const auto grads = loss.emitter()->gradients(loss, scalar_like(loss, 1), wrt, current_where());
  results.insert(results.end(), grads.begin(), grads.end());
  return results;
}

class ResNetParity : public ::testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() { use_backend(cpu_backend()); }
  const Judged judged_{};
};

TEST_P(ResNetParity, SinglePrecision) {
  models::ResNet model(tiny());
  models::load_state(Safetensors::open("tests/fixtures/resnet-tiny/model.safetensors"), model);
  const auto step = [&](const Tensor& x, const Tensor& y) { return score(model, x, y); };
  auto compiled = compile(step, {.partial_batches = false});
  const std::vector<Tensor> got = GetParam() ? compiled(judged_.images(), judged_.labels())
                                             : step(judged_.images(), judged_.labels());
  const auto expect = [&](const std::string& name, const auto& value) {
    const HostArray& want = judged_.expected.at(name);
    EXPECT_LE(error_of(host(value, want), want), judged_.limit(name)) << name;
  };
  expect("logits", got[0]);
  expect("loss", got[1]);
  const std::vector<VariablePtr> parameters = model.parameters();
  ASSERT_EQ(got.size(), parameters.size() + 2);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    expect("grad." + parameters[i]->name.str(), got[i + 2]);
  EXPECT_EQ(model.buffers().size(), 40u);
  for (const VariablePtr& b : model.buffers()) expect("after." + b->name.str(), b);
  model.eval();
  const NoGrad no_grad;
  expect("eval", model(judged_.images()));
}

TEST_P(ResNetParity, LowPrecision) {
  models::ResNet model(tiny());
  const auto trained = amp::initialize(model, optim::Sgd{}, "O2:bf16");
  models::load_state(Safetensors::open("tests/fixtures/resnet-tiny/model.safetensors"), model);
  const auto step = [&](const Tensor& x, const Tensor& y) { return score(model, x, y); };
  auto compiled = compile(step, {.partial_batches = false});
  const std::vector<Tensor> got = GetParam() ? compiled(judged_.images(), judged_.labels())
                                             : step(judged_.images(), judged_.labels());
  const HostArray& want = judged_.expected.at("logits");
  const double error = error_of(host(got[0], want), want);
  // Images, then of twenty convolutions the weights, their results and their norms', eight sums of
  // blocks, the pooled features, the head's weights and the logits.
  constexpr int kRoundings = 1 + 3 * 20 + 8 + 3;
  EXPECT_LE(error, chain_tolerance(DType::BF16, kRoundings));
  EXPECT_GT(error, 1e-5) << "the low type was not used";
}

INSTANTIATE_TEST_SUITE_P(PyTorch, ResNetParity, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "compiled" : "eager");
});

}  // namespace
}  // namespace aloft::parity

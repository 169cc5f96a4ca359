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
  Json errors = read_json("resnet-tiny/expected.json");  // what PyTorch's own runs are off by
  Tensor images() const {
    const HostArray& x = expected.at("x");
    return from_floats({x.values.begin(), x.values.end()}, Shape::of(x.shape));
  }
  Tensor labels() const {
    const HostArray& y = expected.at("labels");
    return from_ints({y.values.begin(), y.values.end()}, Shape::of(y.shape));
  }
  double limit(const std::string& name) const {
    return std::max(1e-5, 2 * errors.at("torch_fp32_error").at(name).get<double>());
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
  load_bytes(a, v->buffer->read<std::byte>().data());
  return a;
}

// Images and labels to logits, loss and the gradient of loss x seed by every parameter.
std::vector<Tensor> score(const models::ResNet& model, const Tensor& x, const Tensor& labels,
                          float seed = 1) {
  const Tensor logits = model(x);
  const Tensor loss = cross_entropy(logits, labels);
  std::vector<Tensor> results{logits, loss}, wrt;
  for (const VariablePtr& p : model.parameters()) wrt.push_back(current_emitter().state(p));
  const auto grads = loss.emitter()->gradients(loss, scalar_like(loss, seed), wrt, current_where());
  results.insert(results.end(), grads.begin(), grads.end());
  return results;
}

// Were this gradient wrong, `problem` would say so.
void expect_wrong_gradients_noticed(const HostArray& want, const auto& problem) {
  for (const auto& [wrong, g] : wrong_gradients(want)) EXPECT_NE(problem(g), "") << wrong;
}

class ResNetParity : public ::testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() { use_device(cpu_device()); }
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
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string name = "grad." + parameters[i]->name.str();
    SCOPED_TRACE(name);
    expect(name, got[i + 2]);
    const HostArray& want = judged_.expected.at(name);
    expect_wrong_gradients_noticed(want, [&](const HostArray& g) {
      return error_of(g, want) <= judged_.limit(name) ? "" : "off";
    });
  }
  EXPECT_EQ(model.buffers().size(), 40u);
  for (const VariablePtr& b : model.buffers()) expect("after." + b->name.str(), b);
  model.eval();
  const NoGrad no_grad;
  expect("eval", model(judged_.images()));
}

// A rounding error turns some of a ReLU's inputs from one side of zero to the other, and with each
// a part of the gradient comes or goes: of a share e of the inputs, sqrt(e) in the norm. So
// gradients in front of a ReLU are off by tenths in bf16, PyTorch's as ours, and which tensor it
// meets is chance, another on each processor: 3.5 times the mean of PyTorch's errors is allowed
// where twice their own is less. That is 0.47 of a gradient's length, and 0.65 of the worst one's;
// in f16, of eight times finer roundings, a third of it. The factor is fitted, not derived: the
// worst tensor is off by 2.3 times the mean in bf16 with AVX-512's bf16 products, by 3.7 times with
// AVX2 (a tensor where twice PyTorch's own is more), in f16 by 2.3 times with either, and 2.5 was
// too little on a third processor. So zeros and a doubled gradient are noticed here, one that is
// wrong by less than the limit is not: of that single precision, in the same test, is the judge.
// Forward, and in the head's gradients behind the last ReLU, the limits are those of roundings.
double limit_before_relus(const LowJudge& judge, const std::vector<VariablePtr>& parameters) {
  double squares = 0;
  for (const VariablePtr& p : parameters)
    squares += std::pow(judge.own_norm_error("grad." + p->name.str()), 2);
  return 3.5 * std::sqrt(squares / static_cast<double>(parameters.size()));
}

struct LowLevel {
  const char* name;
  DType type;
  float seed;
};

TEST_P(ResNetParity, LowPrecision) {
  for (const LowLevel& low :
       {LowLevel{"O1:bf16", DType::BF16, 1}, LowLevel{"O2:bf16", DType::BF16, 1},
        LowLevel{"O1:fp16", DType::F16, 1024}, LowLevel{"O2:fp16", DType::F16, 1024}}) {
    SCOPED_TRACE(low.name);
    models::ResNet model(tiny());
    const auto trained = amp::initialize(model, optim::Sgd{}, low.name);
    models::load_state(Safetensors::open("tests/fixtures/resnet-tiny/model.safetensors"), model);
    const auto step = [&](const Tensor& x, const Tensor& y) {
      return score(model, x, y, low.seed);
    };
    auto compiled = compile(step, {.partial_batches = false});
    const std::vector<Tensor> got = GetParam() ? compiled(judged_.images(), judged_.labels())
                                               : step(judged_.images(), judged_.labels());
    const LowJudge judge(judged_.errors, low.type);
    const HostArray &logits = judged_.expected.at("logits"), &loss = judged_.expected.at("loss");
    EXPECT_EQ(judge.problem("logits", host(got[0], logits), logits), "");
    EXPECT_GT(norm_error(host(got[0], logits), logits), judge.own_norm_error("logits") / 4)
        << "the low type was not used";
    EXPECT_LE(error_of(host(got[1], loss), loss), judge.loss_limit(logits, loss, logits.shape[0]));
    const std::vector<VariablePtr> parameters = model.parameters();
    ASSERT_EQ(got.size(), parameters.size() + 2);
    const double limit = limit_before_relus(judge, parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string name = "grad." + parameters[i]->name.str();
      SCOPED_TRACE(name);
      const HostArray& want = judged_.expected.at(name);
      HostArray g = host(got[i + 2], want);
      for (HostNumber& x : g.values) x /= low.seed;
      const auto problem = [&](const HostArray& g) {
        return name.starts_with("grad.fc.") ? judge.problem(name, g, want)
                                            : judge.norm_problem(name, g, want, limit);
      };
      EXPECT_EQ(problem(g), "");
      expect_wrong_gradients_noticed(want, problem);
    }
    for (const VariablePtr& b : model.buffers()) {
      const HostArray& want = judged_.expected.at("after." + b->name.str());
      EXPECT_EQ(judge.problem("after." + b->name.str(), host(b, want), want), "") << b->name.str();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, ResNetParity, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "compiled" : "eager");
});

}  // namespace
}  // namespace aloft::parity

// Twenty steps of every optimizer against torch.optim, clipping by global norm and a schedule
// included: the parameters after each step.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/module.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/evaluate.h"
#include "ops/grad_stats.h"
#include "ops/graph_emitter.h"
#include "ops/reduce.h"
#include "ops/step_tensors.h"
#include "ops/update.h"
#include "optim/adam.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "parity/fixture.h"
#include "types/tolerance.h"

namespace aloft::parity {
namespace {

// Against torch.optim in float32, whose own rounding is part of the difference: twice the bound of
// one element-wise chain.
const double kLimit = 2 * tolerance_of(DType::F32).relative;

const Fixture& optimizers() {
  static const Fixture fixture("optimizers");
  return fixture;
}

// The fixture's tensors, in the order that the update op sees them.
const std::vector<std::string>& parameter_names() {
  static const std::vector<std::string> names = optimizers().info.at("parameters");
  return names;
}

scalar::ScheduleRule schedule_of(const Json& c) {
  if (!c.contains("schedule")) return {};
  const Json& s = c.at("schedule");
  return {.kind = scalar::ScheduleKind::Linear,
          .warmup = s.at("warmup"),
          .total = s.at("total"),
          .min_factor = s.at("min_factor")};
}

int moments_of(const Json& c) {
  if (c.at("kind") != "SGD") return 2;
  return c.at("options").value("momentum", 0.0) != 0 ? 1 : 0;
}

OptimizerSpec without_groups(const Json& c);

UpdateResults emit_optimizer(const Json& c, const UpdateOperands& operands) {
  const OptimizerSpec spec = without_groups(c);
  return emit_update(
      spec.rule, operands,
      {.decay = Ints(operands.parameters.size(), 1), .weight_decay = spec.weight_decay});
}

// One step of a case as a graph over inputs "lr", "applied", "scale", "p.NAME", "g.NAME",
// "mK.NAME".
Graph step_graph(const Json& c) {
  Graph graph;
  GraphEmitter emitter(graph);
  EmitterScope scope(emitter);
  const auto input = [&](const std::string& name, DType dtype, Shape shape) {
    return emitter.handle(graph.add_input(name, {dtype, std::move(shape)}));
  };
  UpdateOperands u;
  u.lr = input("lr", DType::F32, {});
  u.applied = input("applied", DType::I64, {});
  const Tensor scale = input("scale", DType::F32, {});
  u.states.resize(moments_of(c));
  for (const std::string& name : parameter_names()) {
    const Shape shape = Shape::of(optimizers().arrays.at("start." + name).shape);
    u.parameters.push_back(input("p." + name, DType::F32, shape));
    u.gradients.push_back(input("g." + name, DType::F32, shape));
    for (std::size_t k = 0; k < u.states.size(); ++k)
      u.states[k].push_back(input("m" + std::to_string(k) + "." + name, DType::F32, shape));
  }
  const GradStats stats = grad_stats(scale, u.gradients, c.value("clip", 0.0));
  u.multiplier = stats.multiplier;
  u.finite = stats.finite;
  const UpdateResults r = emit_optimizer(c, u);
  graph.set_output("norm", stats.norm.id());
  for (std::size_t i = 0; i < r.parameters.size(); ++i) {
    const std::string& name = parameter_names()[i];
    graph.set_output("p." + name, r.parameters[i].id());
    for (std::size_t k = 0; k < r.states.size(); ++k)
      graph.set_output("m" + std::to_string(k) + "." + name, r.states[k][i].id());
  }
  return graph;
}

// Step `t` of a tensor whose first axis counts steps.
HostArray slice(const HostArray& all, std::int64_t t) {
  HostArray one = HostArray::zeros(all.dtype, {all.shape.begin() + 1, all.shape.end()});
  std::copy_n(all.values.begin() + t * one.numel(), one.numel(), one.values.begin());
  return one;
}

// Appends one step to a tensor of `steps` steps.
void append(HostArray& all, const HostArray& one, std::int64_t steps) {
  all.shape = one.shape;
  all.shape.insert(all.shape.begin(), steps);
  all.values.insert(all.values.end(), one.values.begin(), one.values.end());
}

HostArray scalar_of(DType dtype, double value) { return {dtype, {}, {value}}; }

class Optimizers : public ::testing::TestWithParam<int> {
 protected:
  const Json& info() const { return optimizers().cases().at(GetParam()); }

  std::map<Name, HostArray> start() const {
    std::map<Name, HostArray> values;
    values["scale"] = scalar_of(DType::F32, 1);
    for (const std::string& name : parameter_names()) {
      values["p." + name] = optimizers().arrays.at("start." + name);
      for (int k = 0; k < moments_of(info()); ++k)
        values["m" + std::to_string(k) + "." + name] =
            HostArray::zeros(DType::F32, values["p." + name].shape);
    }
    return values;
  }

  void set_step(std::map<Name, HostArray>& values, std::int64_t t) const {
    double lr = info().at("options").at("lr");
    if (info().contains("schedule")) lr *= schedule_factor(schedule_of(info()), t);
    values["lr"] = scalar_of(DType::F32, lr);
    values["applied"] = scalar_of(DType::I64, t);
    for (const std::string& name : parameter_names())
      values["g." + name] = slice(optimizers().arrays.at("grad." + name), t);
  }

  // Whole trajectories, [step, ...]: a weight that passes zero has no relative error of its own.
  void expect_trajectories(const Arrays& got) const {
    const std::string prefix = info().at("name").get<std::string>() + ".";
    for (const std::string& name : parameter_names())
      EXPECT_LE(error_of(got.at("p." + name), optimizers().arrays.at(prefix + name)), kLimit)
          << name;
    if (!info().contains("grad_norm")) return;
    const std::vector<double> norms = info().at("grad_norm");
    for (std::size_t t = 0; t < norms.size(); ++t)
      EXPECT_NEAR(got.at("norm").values[t], norms[t], kLimit * norms[t]) << "step " << t;
  }
};

// One update op; groups are several, which minimize() makes.
class UpdateOps : public Optimizers {};

TEST_P(UpdateOps, FollowTorch) {
  const Graph graph = step_graph(info());
  auto values = start();
  const std::int64_t steps = optimizers().info.at("steps");
  Arrays seen;
  for (std::int64_t t = 0; t < steps; ++t) {
    set_step(values, t);
    for (const auto& [name, array] : interpret(graph, values).outputs) {
      append(seen[name.str()], array, steps);
      if (name != Name("norm")) values[name] = array;
    }
  }
  expect_trajectories(seen);
}

// The same through what a user writes: parameters of a module, minimize(), compiled or not.
struct Weights : nn::Module {
  std::vector<VariablePtr> all;
  Weights() {
    for (const std::string& name : parameter_names()) {
      const HostArray& start = optimizers().arrays.at("start." + name);
      all.push_back(add_parameter(name, Shape::of(start.shape), [&](float* to, std::int64_t) {
        std::copy(start.values.begin(), start.values.end(), to);
      }));
    }
  }
  // A loss whose gradients are the given ones: the sum of all products.
  Tensor operator()(const std::vector<Tensor>& gradients) const {
    Tensor loss;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Tensor part = sum(use(all[i]) * gradients[i]);
      loss = loss.is_defined() ? loss + part : part;
    }
    return loss;
  }
};

OptimizerSpec without_groups(const Json& c) {
  const Json& o = c.at("options");
  const double lr = o.at("lr"), decay = o.value("weight_decay", 0.0), clip = c.value("clip", 0.0);
  if (c.at("kind") == "SGD")
    return optim::Sgd{.lr = lr,
                      .momentum = o.value("momentum", 0.0),
                      .nesterov = o.value("nesterov", false),
                      .weight_decay = decay,
                      .clip_norm = clip,
                      .schedule = schedule_of(c)};
  const auto betas = o.value("betas", std::vector<double>{0.9, 0.999});
  const double eps = o.value("eps", 1e-8);
  if (c.at("kind") == "Adam")
    return optim::Adam{.lr = lr,
                       .beta1 = betas[0],
                       .beta2 = betas[1],
                       .eps = eps,
                       .weight_decay = decay,
                       .clip_norm = clip,
                       .schedule = schedule_of(c)};
  return optim::AdamW{.lr = lr,
                      .beta1 = betas[0],
                      .beta2 = betas[1],
                      .eps = eps,
                      .weight_decay = decay,
                      .clip_norm = clip,
                      .schedule = schedule_of(c)};
}

OptimizerSpec spec_of(const Json& c) {
  OptimizerSpec spec = without_groups(c);
  for (const Json& g : c.value("groups", Json::array())) {
    ParameterGroup& group = spec.groups.emplace_back();
    group.parameters = g.at("parameters").get<std::vector<std::string>>();
    if (g.contains("lr")) group.lr = g.at("lr");
    if (g.contains("weight_decay")) group.weight_decay = g.at("weight_decay");
  }
  return spec;
}

// Calls `step(gradients)` for every step and collects what it leaves in the weights.
Arrays train(const Weights& weights,
             const std::function<StepResult(const std::vector<Tensor>&)>& step) {
  const std::int64_t steps = optimizers().info.at("steps");
  Arrays seen;
  for (std::int64_t t = 0; t < steps; ++t) {
    std::vector<Tensor> gradients;
    for (const std::string& name : parameter_names()) {
      const HostArray g = slice(optimizers().arrays.at("grad." + name), t);
      gradients.push_back(from_floats({g.values.begin(), g.values.end()}, Shape::of(g.shape)));
    }
    const StepResult result = step(gradients);
    append(seen["norm"], scalar_of(DType::F32, result.grad_norm.item()), steps);
    for (std::size_t i = 0; i < weights.all.size(); ++i) {
      HostArray now = slice(optimizers().arrays.at("grad." + parameter_names()[i]), t);
      load_bytes(now, weights.all[i]->buffer->read<std::byte>().data());
      append(seen["p." + parameter_names()[i]], now, steps);
    }
  }
  return seen;
}

TEST_P(Optimizers, FollowTorchEagerly) {
  use_device(cpu_device());
  Weights weights;
  auto trained = amp::initialize(weights, spec_of(info()), "O0");
  expect_trajectories(train(weights, [&](const std::vector<Tensor>& gradients) {
    return minimize(trained.first(gradients), trained.second);
  }));
}

TEST_P(Optimizers, FollowTorchCompiled) {
  use_device(cpu_device());
  Weights weights;
  auto trained = amp::initialize(weights, spec_of(info()), "O0");
  auto compiled = compile(
      [&](const Tensor& a, const Tensor& b, const Tensor& c) {
        return minimize(trained.first(std::vector{a, b, c}), trained.second);
      },
      {.partial_batches = false});
  expect_trajectories(train(
      weights, [&](const std::vector<Tensor>& g) { return compiled(g.at(0), g.at(1), g.at(2)); }));
}

std::vector<int> cases_with(bool groups) {
  std::vector<int> numbers;
  const auto& cases = optimizers().cases();
  for (int i = 0; i < static_cast<int>(cases.size()); ++i)
    if (groups || !cases.at(i).contains("groups")) numbers.push_back(i);
  return numbers;
}

std::string name_of_case(const ::testing::TestParamInfo<int>& info) {
  std::string name = optimizers().cases().at(info.param).at("name");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Torch, Optimizers, ::testing::ValuesIn(cases_with(true)), name_of_case);
INSTANTIATE_TEST_SUITE_P(Torch, UpdateOps, ::testing::ValuesIn(cases_with(false)), name_of_case);

struct Normed : nn::Module {
  nn::Linear in{*this, "in", 3, 4};
  nn::LayerNorm norm{*this, "norm", 4};
  Tensor operator()(const Tensor& x) const { return norm(in(x)); }
};

// Parameters that one step without gradients makes smaller: all are 1 before it.
std::vector<std::string> decayed_by(const OptimizerSpec& spec) {
  use_device(cpu_device());
  Normed model;
  for (const VariablePtr& p : model.parameters())
    std::ranges::fill(p->buffer->write<float>(), 1.0f);
  auto [net, optimizer] = amp::initialize(model, spec, "O0");
  minimize(sum(net(full({2, 3}, 1))) * 0.0, optimizer);
  std::vector<std::string> names;
  for (const VariablePtr& p : model.parameters())
    if (p->buffer->read_one<float>() == 1.0f - 0.5f * 0.25f) names.push_back(p->name.str());
  return names;
}

// torch.optim's rule for AdamW, Adam and SGD: a weight decay holds for what the optimizer is given.
TEST(WeightDecay, HoldsForEveryParameterUnlessSaidOtherwise) {
  const std::vector<std::string> all = {"in.weight", "in.bias", "norm.weight", "norm.bias"};
  EXPECT_EQ(decayed_by(optim::AdamW{.lr = 0.5, .weight_decay = 0.25}), all);
  EXPECT_EQ(decayed_by(optim::Sgd{.lr = 0.5, .weight_decay = 0.25}), all);
  EXPECT_EQ(decayed_by(optim::Momentum{.lr = 0.5, .weight_decay = 0.25}), all);
  EXPECT_EQ(decayed_by(optim::AdamW{.lr = 0.5, .weight_decay = 0.25, .decay = kWeightsDecay}),
            std::vector<std::string>{"in.weight"});
  EXPECT_EQ(
      decayed_by(optim::AdamW{.lr = 0.5, .weight_decay = 0.25, .decay = {.without = {"norm.*"}}}),
      (std::vector<std::string>{"in.weight", "in.bias"}));
}

}  // namespace
}  // namespace aloft::parity

// Fifty steps of every rule that torch.optim has, against torch.optim in float64: the meaning of
// the update op, and what a program in fp32 leaves in parameters and states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/module.h"
#include "ops/binary.h"
#include "ops/meaning_of_step.h"
#include "ops/reduce.h"
#include "optim/adadelta.h"
#include "optim/adafactor.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamax.h"
#include "optim/adamw.h"
#include "optim/nadam.h"
#include "optim/radam.h"
#include "optim/rmsprop.h"
#include "optim/rprop.h"
#include "optim/sgd.h"
#include "parity/fixture.h"
#include "parity/parity_row.h"

namespace aloft::parity {
namespace {

const Fixture& rules() {
  static const Fixture fixture("optimizer_rules");
  return fixture;
}
std::vector<std::string> names() { return rules().info.at("parameters"); }
std::int64_t steps() { return rules().info.at("steps"); }

// torch's options, by their names.
class Options {
 public:
  explicit Options(const Json& options) : o_(options) {}
  double lr() const { return o_.at("lr"); }
  double decay() const { return number("weight_decay", 0); }
  double number(const char* name, double usual) const { return o_.value(name, usual); }
  bool flag(const char* name) const { return o_.value(name, false); }
  double of(const char* list, std::size_t i, double usual) const {
    return o_.contains(list) ? o_.at(list).at(i).get<double>() : usual;
  }

 private:
  const Json& o_;
};

// Options that are of every rule, and those that most have.
template <class O>
O with_common(const Options& o, O out) {
  out.lr = o.lr();
  out.weight_decay = o.decay();
  out.maximize = o.flag("maximize");
  return out;
}
template <class O>
O of_adam(const Options& o, O out) {
  out.beta1 = o.of("betas", 0, out.beta1);
  out.beta2 = o.of("betas", 1, out.beta2);
  return with_common(o, out);
}

const std::map<std::string, std::function<OptimizerSpec(const Options&)>>& makers() {
  using namespace optim;
  static const std::map<std::string, std::function<OptimizerSpec(const Options&)>> all = {
      {"SGD",
       [](const Options& o) {
         return with_common(o, Sgd{.momentum = o.number("momentum", 0),
                                   .dampening = o.number("dampening", 0),
                                   .nesterov = o.flag("nesterov")});
       }},
      {"Adam", [](const Options& o) { return of_adam(o, Adam{.amsgrad = o.flag("amsgrad")}); }},
      {"AdamW", [](const Options& o) { return of_adam(o, AdamW{.amsgrad = o.flag("amsgrad")}); }},
      {"Adamax", [](const Options& o) { return of_adam(o, Adamax{}); }},
      {"NAdam",
       [](const Options& o) {
         NAdam out{.decoupled_decay = o.flag("decoupled_weight_decay")};
         out.momentum_decay = o.number("momentum_decay", out.momentum_decay);
         return of_adam(o, out);
       }},
      {"RAdam",
       [](const Options& o) {
         return of_adam(o, RAdam{.decoupled_decay = o.flag("decoupled_weight_decay")});
       }},
      {"Adagrad",
       [](const Options& o) {
         return with_common(o, Adagrad{.lr_decay = o.number("lr_decay", 0),
                                       .initial_sum = o.number("initial_accumulator_value", 0)});
       }},
      {"Adadelta",
       [](const Options& o) { return with_common(o, Adadelta{.rho = o.number("rho", 0.9)}); }},
      {"Adafactor",
       [](const Options& o) {
         return with_common(o, Adafactor{.beta2_decay = o.number("beta2_decay", -0.8),
                                         .eps_square = o.of("eps", 0, 1e-8),
                                         .eps_size = o.of("eps", 1, 1e-3),
                                         .clip = o.number("d", 1)});
       }},
      {"RMSprop",
       [](const Options& o) {
         return with_common(o, RmsProp{.alpha = o.number("alpha", 0.99),
                                       .eps = o.number("eps", 1e-8),
                                       .momentum = o.number("momentum", 0),
                                       .centered = o.flag("centered")});
       }},
      {"Rprop",
       [](const Options& o) {
         return with_common(o, Rprop{.eta_minus = o.of("etas", 0, 0.5),
                                     .eta_plus = o.of("etas", 1, 1.2),
                                     .least_size = o.of("step_sizes", 0, 1e-6),
                                     .most_size = o.of("step_sizes", 1, 50)});
       }},
  };
  return all;
}

HostArray step_of(const HostArray& all, std::int64_t t) {
  HostArray one = HostArray::zeros(all.dtype, {all.shape.begin() + 1, all.shape.end()});
  std::copy_n(all.values.begin() + t * one.numel(), one.numel(), one.values.begin());
  return one;
}

// What a rule keeps of each parameter, and the parameters as "p", by "STATE.NAME".
using Kept = std::map<std::string, HostArray>;

class Rules : public ::testing::TestWithParam<int> {
 protected:
  const Json& info() const { return rules().cases().at(GetParam()); }
  OptimizerSpec spec() const {
    return makers().at(info().at("kind"))(Options(info().at("options")));
  }
  // Every state that torch keeps has the same name here.
  void expect_near(const Kept& got, const char* type, double relative) const {
    const auto name = info().at("name").get<std::string>();
    const std::string prefix = name + ".";
    ParityRow row("optimizer", name + ", in " + type, relative);
    int compared = 0;
    for (const auto& [key, judged] : rules().arrays) {
      if (!key.starts_with(prefix)) continue;
      const std::string own = key.substr(prefix.size());
      ASSERT_TRUE(got.contains(own)) << own;
      ASSERT_EQ(got.at(own).shape, judged.shape) << own;
      const double peak = info().at("peak").at(own);
      for (std::size_t i = 0; i < judged.values.size(); ++i)
        row.see(got.at(own).values[i], judged.values[i], peak, own + " " + std::to_string(i));
      ++compared;
    }
    EXPECT_GE(compared, 3);
  }
};

TEST_P(Rules, MeanWhatTorchComputesInDouble) {
  const OptimizerSpec spec = this->spec();
  const std::vector<std::string_view> states = spec.rule.states();
  std::vector<HostArray> kept;
  std::vector<Shape> shapes;
  for (const std::string& name : names()) {
    kept.push_back(rules().arrays.at("start." + name));
    shapes.push_back(Shape::of(kept.back().shape));
  }
  const MeaningOfStep step(spec, shapes);
  kept = step.start(kept);
  for (std::int64_t t = 0; t < steps(); ++t) {
    std::vector<HostArray> gradients;
    for (const std::string& name : names())
      gradients.push_back(step_of(rules().arrays.at("grad." + name), t));
    kept = step(kept, gradients, t);
  }
  Kept got;
  for (std::size_t i = 0; i < names().size(); ++i) {
    got["p." + names()[i]] = kept[i];
    for (std::size_t k = 0; k < states.size(); ++k)
      got[std::string(states[k]) + "." + names()[i]] = kept[(k + 1) * names().size() + i];
  }
  expect_near(got, "double", 1e-12);
}

struct Weights : nn::Module {
  std::vector<VariablePtr> all;
  Weights() {
    for (const std::string& name : names()) {
      const HostArray& start = rules().arrays.at("start." + name);
      all.push_back(add_parameter(name, Shape::of(start.shape), [&](float* to, std::int64_t) {
        std::copy(start.values.begin(), start.values.end(), to);
      }));
    }
  }
  // A loss whose gradients are the given ones.
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c) const {
    return sum(use(all[0]) * a) + sum(use(all[1]) * b) + sum(use(all[2]) * c);
  }
};

TEST_P(Rules, StayBesideTorchInFp32) {
  use_device(cpu_device());
  Weights weights;
  auto trained = amp::initialize(weights, spec(), "O0");
  Optimizer& optimizer = trained.second;
  auto step = compile([&](const Tensor& a, const Tensor& b,
                          const Tensor& c) { return minimize(trained.first(a, b, c), optimizer); },
                      {.partial_batches = false});
  const auto gradient = [](const std::string& name, std::int64_t t) {
    const HostArray g = step_of(rules().arrays.at("grad." + name), t);
    return from_floats({g.values.begin(), g.values.end()}, Shape::of(g.shape));
  };
  for (std::int64_t t = 0; t < steps(); ++t)
    step(gradient("a", t), gradient("b", t), gradient("c", t));
  Kept got;
  const auto keep = [&](const std::string& state, std::size_t i, const VariablePtr& v) {
    const std::vector<float> values = v->to_floats();
    got[state + "." + names()[i]] = {
        DType::F32, v->type.shape.max_extents(), {values.begin(), values.end()}};
  };
  const auto states = optimizer.spec().rule.states();
  for (std::size_t i = 0; i < names().size(); ++i) {
    keep("p", i, weights.all[i]);
    for (std::size_t k = 0; k < states.size(); ++k)
      keep(std::string(states[k]), i, optimizer.moment(k, i));
  }
  expect_near(got, "fp32", 1e-6);
}

std::vector<int> every_case() {
  std::vector<int> all(rules().cases().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  return all;
}
std::string name_of_case(const ::testing::TestParamInfo<int>& info) {
  std::string name = rules().cases().at(info.param).at("name");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Torch, Rules, ::testing::ValuesIn(every_case()), name_of_case);

}  // namespace
}  // namespace aloft::parity

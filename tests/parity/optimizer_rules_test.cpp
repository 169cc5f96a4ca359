// Fifty steps of every optimizer, against torch.optim in float64 where that has the rule, else
// against the equations of its paper, in NumPy: the meaning of the update op, and what a program in
// fp32 leaves in parameters and states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <ostream>
#include <set>
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
#include "optim/kind.h"
#include "optim/nadam.h"
#include "optim/radam.h"
#include "optim/rmsprop.h"
#include "optim/rprop.h"
#include "optim/sgd.h"
#include "parity/fixture.h"
#include "parity/parity_row.h"

namespace aloft::parity {
namespace {

// torch.optim's rules, and those that are the papers'.
const Fixture& torch_rules() {
  static const Fixture fixture("optimizer_rules");
  return fixture;
}
const Fixture& papers() {
  static const Fixture fixture("optimizer_papers");
  return fixture;
}

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

OptimizerSpec of_torch(const Json& c) {
  return makers().at(c.at("kind"))(Options(c.at("options")));
}

// Those of the papers have the keys of recipes.
OptimizerSpec of_paper(const Json& c) {
  const optim::OptimizerKind& kind = optim::optimizer_kind(c.at("kind").get<std::string>());
  const Json& options = c.at("options");
  SettingValues values = optim::usual_settings(kind);
  std::size_t used = 3;  // those below
  for (const optim::OptimizerSetting& s : kind.settings) {
    const std::string key(s.key);
    if (!options.contains(key)) continue;
    const Json& o = options.at(key);
    values.at(key) = o.is_boolean() ? SettingValue(o.get<bool>())
                     : o.is_array() ? SettingValue(o.get<std::vector<double>>())
                                    : SettingValue(o.get<double>());
    ++used;
  }
  OptimizerSpec spec{.rule = kind.rule(values),
                     .lr = options.at("lr"),
                     .weight_decay = options.at("weight_decay")};
  spec.maximize = options.at("maximize");
  if (options.contains("rest"))
    spec.rest = options.at("rest").get<std::vector<std::string>>(), ++used;
  EXPECT_EQ(used, options.size()) << c.at("name");
  return spec;
}

struct Case {
  const Fixture* fixture;
  std::size_t index;

  const Json& info() const { return fixture->cases().at(index); }
  std::string name() const { return info().at("name"); }
  OptimizerSpec spec() const { return fixture == &papers() ? of_paper(info()) : of_torch(info()); }
  std::vector<std::string> parameters() const { return fixture->info.at("parameters"); }
  std::int64_t steps() const { return fixture->info.at("steps"); }
  const HostArray& start(const std::string& parameter) const {
    return fixture->arrays.at("start." + parameter);
  }
  HostArray gradient(const std::string& parameter, std::int64_t t) const {
    const HostArray& all = fixture->arrays.at("grad." + parameter);
    HostArray one = HostArray::zeros(all.dtype, {all.shape.begin() + 1, all.shape.end()});
    std::copy_n(all.values.begin() + t * one.numel(), one.numel(), one.values.begin());
    return one;
  }
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name(); }

// What a rule keeps of each parameter, and the parameters as "p", by "STATE.NAME".
using Kept = std::map<std::string, HostArray>;

// Errors are shares of a tensor's largest value, of a tensor of one number, too.
double scale_of(const HostArray& judged) {
  double largest = 0;
  for (const double x : judged.values) largest = std::max(largest, std::abs(x));
  return largest;
}

class Rules : public ::testing::TestWithParam<Case> {
 protected:
  // The judge has every state that is kept, and the other way round.
  static void expect_near(const Kept& got, const char* type, double relative) {
    const Case& c = GetParam();
    const std::string prefix = c.name() + ".";
    ParityRow row("optimizer", c.name() + ", in " + type, relative);
    std::size_t compared = 0;
    for (const auto& [key, judged] : c.fixture->arrays) {
      if (!key.starts_with(prefix)) continue;
      const std::string own = key.substr(prefix.size());
      ASSERT_TRUE(got.contains(own)) << own;
      ASSERT_EQ(got.at(own).shape, judged.shape) << own;
      const double scale = scale_of(judged);
      for (std::size_t i = 0; i < judged.values.size(); ++i)
        row.see(got.at(own).values[i], judged.values[i], scale, own + " " + std::to_string(i));
      ++compared;
    }
    EXPECT_EQ(compared, got.size());
  }
};

TEST_P(Rules, MeanWhatTheJudgeComputesInDouble) {
  const Case& c = GetParam();
  const OptimizerSpec spec = c.spec();
  const std::vector<std::string_view> states = spec.rule.states();
  const std::vector<std::string> names = c.parameters();
  std::vector<HostArray> kept;
  std::vector<Shape> shapes;
  Ints rest;
  for (const std::string& name : names) {
    kept.push_back(c.start(name));
    shapes.push_back(Shape::of(kept.back().shape));
    rest.push_back(std::ranges::count(spec.rest, name));
  }
  const MeaningOfStep step(spec, shapes, rest);
  kept = step.start(kept);
  for (std::int64_t t = 0; t < c.steps(); ++t) {
    std::vector<HostArray> gradients;
    for (const std::string& name : names) gradients.push_back(c.gradient(name, t));
    kept = step(kept, gradients, t);
  }
  Kept got;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const std::size_t state = i / names.size();
    const std::string name = state == 0 ? "p" : std::string(states[state - 1]);
    if (kept[i].numel() > 0) got[name + "." + names[i % names.size()]] = kept[i];
  }
  expect_near(got, "double", 1e-12);
}

struct Weights : nn::Module {
  std::vector<VariablePtr> all;
  explicit Weights(const Case& c) {
    for (const std::string& name : c.parameters()) {
      const HostArray& start = c.start(name);
      all.push_back(add_parameter(name, Shape::of(start.shape), [&](float* to, std::int64_t) {
        std::copy(start.values.begin(), start.values.end(), to);
      }));
    }
  }
  // A loss whose gradients are the given ones.
  Tensor operator()(const std::vector<Tensor>& g) const {
    Tensor loss = sum(use(all[0]) * g[0]);
    for (std::size_t i = 1; i < all.size(); ++i) loss = loss + sum(use(all[i]) * g[i]);
    return loss;
  }
};

TEST_P(Rules, StayBesideTheJudgeInFp32) {
  use_device(cpu_device());
  const Case& c = GetParam();
  const std::vector<std::string> names = c.parameters();
  Weights weights(c);
  auto trained = amp::initialize(weights, c.spec(), "O0");
  Optimizer& optimizer = trained.second;
  auto step =
      compile([&](const std::vector<Tensor>& g) { return minimize(trained.first(g), optimizer); },
              {.partial_batches = false});
  for (std::int64_t t = 0; t < c.steps(); ++t) {
    std::vector<Tensor> gradients;
    for (const std::string& name : names) {
      const HostArray g = c.gradient(name, t);
      gradients.push_back(from_floats({g.values.begin(), g.values.end()}, Shape::of(g.shape)));
    }
    step(gradients);
  }
  Kept got;
  const auto keep = [&](std::string_view state, std::size_t i, const VariablePtr& v) {
    const std::vector<float> values = v->to_floats();
    if (!values.empty())
      got[std::string(state) + "." + names[i]] = {
          DType::F32, v->type.shape.max_extents(), {values.begin(), values.end()}};
  };
  const auto states = optimizer.spec().rule.states();
  for (std::size_t i = 0; i < names.size(); ++i) {
    keep("p", i, weights.all[i]);
    for (std::size_t k = 0; k < states.size(); ++k) keep(states[k], i, optimizer.moment(k, i));
  }
  expect_near(got, "fp32", 1e-6);
}

std::vector<Case> cases_of(const Fixture& fixture) {
  std::vector<Case> all;
  for (std::size_t i = 0; i < fixture.cases().size(); ++i) all.push_back({&fixture, i});
  return all;
}
std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Torch, Rules, ::testing::ValuesIn(cases_of(torch_rules())), name_of_case);
INSTANTIATE_TEST_SUITE_P(Papers, Rules, ::testing::ValuesIn(cases_of(papers())), name_of_case);

// A new optimizer, or a new formula of one, needs a case.
TEST(JudgedRules, AreOfEveryOptimizer) {
  std::set<std::string_view> judged, all;
  for (const Fixture* fixture : {&torch_rules(), &papers()})
    for (const Case& c : cases_of(*fixture)) judged.insert(c.spec().rule.name());
  for (const optim::FormulaRecord* formula : optim::formulas()) all.insert(formula->name);
  EXPECT_EQ(judged, all);
}

}  // namespace
}  // namespace aloft::parity

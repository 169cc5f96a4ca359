// Updating each parameter as soon as its gradient is complete: the bits of updating late, less
// memory, and what happens to a gradient that is not finite.
#include <cmath>
#include <limits>
#include <map>

#include "e2e/small_run.h"
#include "frontend/amp.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "nn/linear.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "optim/adamw.h"
#include "plan/plan.h"
#include "train/session.h"

namespace aloft::e2e {
namespace {

class EarlyUpdate : public SmallRun, public testing::WithParamInterface<const char*> {
 protected:
  std::vector<std::string> in_mode(std::vector<std::string> set, bool early) const {
    set.push_back(std::string("train.mode=") + GetParam());
    set.push_back("optimizer.clip_norm=0");
    if (early) set.push_back("optimizer.update=early");
    return set;
  }
};

// Norms, losses and rates are in the metrics.
TEST_P(EarlyUpdate, HasTheBitsOfALateOne) {
  const std::map<std::string, std::vector<std::string>> kinds = {
      {"f32", {"precision=O0"}},
      {"bf16", {"precision=O2:bf16", "train.steps=30", "train.checkpoint_every=0"}},
      {"split", {"precision=O2:bf16", "optimizer.master=split"}},
      {"o1", {"precision=O1:bf16", "optimizer.kind=momentum"}},
      {"lamb", {"precision=O2:bf16", "optimizer.kind=lamb", "optimizer.master=split"}},
      {"lion", {"precision=O2:bf16", "optimizer.kind=lion", "optimizer.states=bf16"}},
      {"8bit", {"precision=O2:bf16", "optimizer.states=8bit"}},
      {"stochastic", {"precision=O3:bf16", "optimizer.rounding=stochastic"}},
      {"untied", {"precision=O2:bf16", "model.tied=false", "model.bias=false"}},
      {"groups",
       {"precision=O2:bf16",
        R"(optimizer.groups=[{parameters=["h.*"], lr=1e-4, weight_decay=0.3}])"}},
      {"accumulation", {"precision=O2:bf16", "train.accumulate=2"}}};
  for (const auto& [name, set] : kinds) {
    if (std::string_view(GetParam()) == "eager" && name != "bf16" && name != "accumulation")
      continue;
    run(name + "-late", in_mode(set, false));
    run(name + "-early", in_mode(set, true));
    const std::string last = name == "bf16" ? "step-000030" : "step-000012";
    expect_same_state(name + "-late", name + "-early", last);
    EXPECT_EQ(metrics(name + "-early"), metrics(name + "-late")) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, EarlyUpdate, testing::Values("graph", "eager"),
                         [](const auto& info) { return std::string(info.param); });

class EarlyUpdateMemory : public SmallRun {
 protected:
  Plan planned(const std::vector<std::string>& set) {
    Session session = open_session(recipe(set), {{"vocab", std::int64_t{64}}}, nullptr);
    const auto runner = make_runner(session);
    return runner->programs()->plan();
  }
  static std::size_t parameter_bytes(const Plan& plan) {
    std::size_t sum = 0;
    for (const StateSlot& s : plan.state)
      if (s.cls == StateClass::Parameter) sum += s.type.max_bytes();
    return sum;
  }
};

TEST_F(EarlyUpdateMemory, GradientsDoNotLiveAllAtOnce) {
  for (const char* precision : {"precision=O0", "precision=O2:bf16"}) {
    // Deep and narrow: of its gradients few live together, of its activations few at the end.
    const std::vector<std::string> late_set = {precision, "optimizer.clip_norm=0",
                                               "model.layers=20", "model.dim=64", "train.batch=1"};
    auto early_set = late_set;
    early_set.push_back("optimizer.update=early");
    const Plan late = planned(late_set), early = planned(early_set);
    const std::size_t gradients = parameter_bytes(late);
    EXPECT_GT(gradients, 1u << 20);
    EXPECT_GE(late.arena_bytes.at(Arena::Activations), gradients);
    EXPECT_LT(early.arena_bytes.at(Arena::Activations), gradients / 2) << precision;
    EXPECT_LT(early.peak_bytes(), late.peak_bytes() - gradients / 2) << precision;
  }
}

// Gradients take the places of activations that are gone, even where they wait for each other:
// where activations are large, late updates need little more than early ones.
TEST_F(EarlyUpdateMemory, GradientsTakeThePlacesOfActivations) {
  for (const char* precision : {"precision=O0", "precision=O2:bf16"}) {
    const std::vector<std::string> late_set = {precision, "model.layers=6", "train.batch=24"};
    auto early_set = late_set;
    early_set.insert(early_set.end(), {"optimizer.clip_norm=0", "optimizer.update=early"});
    const Plan late = planned(late_set), early = planned(early_set);
    EXPECT_LE(late.peak_bytes(), early.peak_bytes() + parameter_bytes(late) / 4) << precision;
  }
}

// Sums over micro-batches take a gradient each: there too it is gone before the next one.
TEST_F(EarlyUpdateMemory, AccumulationFreesEachGradient) {
  const Plan plan = planned({"precision=O2:bf16", "train.accumulate=2", "model.layers=20",
                             "model.dim=64", "train.batch=1"});
  EXPECT_LT(plan.arena_bytes.at(Arena::Activations), parameter_bytes(plan) / 2);
}

TEST_F(EarlyUpdateMemory, ClippingAndLossScalesAreRefused) {
  struct Small : nn::Module {
    nn::Linear only{*this, "only", 3, 2};
  };
  const auto said = [&](const OptimizerSpec& spec, const char* precision) -> std::string {
    Small fresh;
    try {
      amp::prepare(fresh, spec, parse_precision(precision));
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0816");
      return e.what();
    }
    return "";
  };
  const auto early = [](double clip) {
    return optim::AdamW{.clip_norm = clip, .update = UpdateTime::Early};
  };
  EXPECT_EQ(said(early(0), "O2:bf16"), "");
  EXPECT_NE(said(early(1), "O2:bf16").find("clip_norm"), std::string::npos);
  EXPECT_NE(said(early(0), "O2:fp16").find("loss scale"), std::string::npos);
  EXPECT_NE(said(early(0), "O2:fp16 loss_scale=fixed").find("fixed"), std::string::npos);
}

struct Poisonable : nn::Module {
  nn::Linear main{*this, "main", 4, 3}, side{*this, "side", 1, 1, {.bias = false}};
};

TEST_F(EarlyUpdateMemory, OnlyWhatIsFiniteIsUpdated) {
  for (Mode mode : {Mode::Eager, Mode::Compiled}) {
    eager().clear_tape();
    manual_seed(3);
    Poisonable model;
    auto [net, opt] =
        amp::initialize(model, optim::AdamW{.lr = 1e-2, .update = UpdateTime::Early}, "O2:bf16");
    auto one = [&, &opt = opt](const Tensor& x, const Tensor& p) {
      ModuleScope scope("", model.policy());
      return minimize(sum(model.main(x)) + sum(model.side(p)), opt);
    };
    auto compiled = compile(one, {.name = "step", .partial_batches = false, .threads = 2});
    const auto step = [&](float poison) {
      const Tensor x = from_floats({1, 2, 3, 4}, {1, 4}), p = from_floats({poison}, {1, 1});
      return mode == Mode::Eager ? one(x, p) : compiled(x, p);
    };
    EXPECT_FALSE(step(1).skipped());
    const auto before = state_of(model, opt);
    const StepResult r = step(std::numeric_limits<float>::infinity());
    EXPECT_TRUE(r.skipped());
    EXPECT_EQ(culprit_names(opt).at(static_cast<std::size_t>(r.culprit.item())), "side.weight");
    const auto after = state_of(model, opt);
    for (const auto& [name, bytes] : before) {
      if (name.starts_with("scaler.") || name.starts_with("random")) continue;
      EXPECT_EQ(after.at(name) == bytes, name.find("side.weight") != std::string::npos) << name;
    }
  }
}

}  // namespace
}  // namespace aloft::e2e

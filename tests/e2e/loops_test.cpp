// The loops of apex, torch.amp and MindSpore leave the same bits behind as minimize(); gradient
// accumulation and overflowed steps agree in both modes.
#include "frontend/loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "e2e/training.h"
#include "models/mlp.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "optim/adam.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kFeatures = 12, kClasses = 5, kRows = 9;

struct Batches {
  Tensor x, label;
  explicit Batches(int step) {
    std::vector<float> values;
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < kRows * kFeatures; ++i)
      values.push_back(static_cast<float>((i * 37 + step * 101) % 19 - 9) / 7);
    for (std::int64_t r = 0; r < kRows; ++r) labels.push_back((r * 3 + step) % kClasses);
    x = from_floats(values, {kRows, kFeatures});
    label = from_ints(labels, {kRows});
  }
};

// All state after 12 steps of `step(net, opt, x, label)`.
template <class Step>
std::map<std::string, std::string> after(const std::string& precision, Step step) {
  use_cpu();
  eager().clear_tape();
  manual_seed(2);
  models::Mlp model({kFeatures, 24, kClasses});
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2, .clip_norm = 0.5}, precision);
  for (int i = 0; i < 12; ++i) {
    const Batches b(i);
    step(net, opt, b.x, b.label);
  }
  return state_of(model, opt);
}

class Loops : public testing::TestWithParam<const char*> {};

TEST_P(Loops, AreMinimizeWithItsPartsInSight) {
  const auto plain = after(GetParam(), [](auto& net, auto& opt, Tensor x, Tensor y) {
    minimize(cross_entropy(net(x), y), opt);
  });
  const auto apex = after(GetParam(), [](auto& net, auto& opt, Tensor x, Tensor y) {
    const Tensor loss = cross_entropy(net(x), y);
    amp::scale_loss(loss, opt).backward();
    amp::step(loss, opt);
  });
  EXPECT_EQ(plain, apex);
  const auto torch = after(GetParam(), [](auto& net, auto& opt, Tensor x, Tensor y) {
    amp::GradScaler scaler(opt);
    const Tensor loss = cross_entropy(net(x), y);
    scaler.scale(loss).backward();
    scaler.step(loss);
    scaler.update();
  });
  EXPECT_EQ(plain, torch);
  const auto mindspore = after(GetParam(), [](auto& net, auto& opt, Tensor x, Tensor y) {
    auto grad_fn =
        value_and_grad([&](Tensor a, Tensor b) { return cross_entropy(net(a), b); }, opt);
    const auto [loss, gradients] = grad_fn(x, y);
    apply_gradients(loss, gradients, opt);
  });
  EXPECT_EQ(plain, mindspore);
}

TEST_P(Loops, AnOverflowIsSkippedAlikeInBothModes) {
  const auto loss_of = [](auto& net, Tensor x, Tensor y, Tensor factor) {
    return cross_entropy(net(x), y) * factor;
  };
  std::vector<std::map<std::string, std::string>> states;
  for (const bool is_compiled : {false, true}) {
    use_cpu();
    eager().clear_tape();
    manual_seed(2);
    models::Mlp model({kFeatures, 24, kClasses});
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, GetParam());
    auto one = [&, &net = net, &opt = opt](Tensor x, Tensor y, Tensor factor) {
      return minimize(loss_of(net, x, y, factor), opt);
    };
    auto compiled = compile(one);
    for (int i = 0; i < 12; ++i) {
      const Batches b(i);
      const float factor = i == 7 ? std::numeric_limits<float>::infinity() : 1.0f;
      const Tensor f = from_floats({factor}, {});
      const std::string old = bytes_of(*model.parameters()[0]);
      const StepResult r = is_compiled ? compiled(b.x, b.label, f) : one(b.x, b.label, f);
      EXPECT_EQ(r.skipped(), i == 7) << i;
      EXPECT_EQ(old == bytes_of(*model.parameters()[0]), i == 7) << i;
      if (i == 7) {
        EXPECT_EQ(culprit_names(opt).at(static_cast<std::size_t>(r.culprit.item())), "1.bias");
      }
    }
    states.push_back(state_of(model, opt));
    EXPECT_EQ(*static_cast<const std::int64_t*>(opt.skipped->data), 1);
    EXPECT_EQ(*static_cast<const std::int64_t*>(opt.applied->data), 11);
  }
  EXPECT_EQ(states[0], states[1]);
}

TEST_P(Loops, AccumulationAgreesInBothModes) {
  std::vector<std::map<std::string, std::string>> states;
  for (const bool is_compiled : {false, true}) {
    use_cpu();
    eager().clear_tape();
    manual_seed(2);
    models::Mlp model({kFeatures, 24, kClasses});
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, GetParam());
    opt.set_accumulation(3);
    auto part = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
      return accumulate(cross_entropy(net(x), y), opt);
    };
    auto whole = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
      return minimize(cross_entropy(net(x), y), opt);
    };
    auto compiled_part = compile(part);
    auto compiled_whole = compile(whole);
    for (int i = 0; i < 12; ++i) {
      const Batches b(i);
      if (i % 3 < 2)
        is_compiled ? compiled_part(b.x, b.label) : part(b.x, b.label);
      else
        is_compiled ? compiled_whole(b.x, b.label) : whole(b.x, b.label);
    }
    auto state = state_of(model, opt);
    state["random"] = bytes_of(*random_state());
    states.push_back(state);
    EXPECT_EQ(*static_cast<const std::int64_t*>(opt.applied->data), 4);
  }
  EXPECT_EQ(states[0], states[1]);
}

INSTANTIATE_TEST_SUITE_P(All, Loops, testing::Values("O0", "O1:fp16", "O2:bf16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

TEST(LoopMistakes, AStepNeedsGradients) {
  use_cpu();
  eager().clear_tape();
  eager().forget_gradients();
  models::Mlp model({kFeatures, kClasses});
  auto [net, opt] = amp::initialize(model, optim::AdamW{}, "O0");
  const Batches b(0);
  const Tensor loss = cross_entropy(net(b.x), b.label);
  EXPECT_THROW(amp::step(loss, opt), UserError);
  EXPECT_THROW(amp::GradScaler(opt).update(), UserError);
}

template <class F>
std::string code_of(F call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

// What a program can get wrong has a code of its own: E9000 is for ours.
TEST(LoopMistakes, AreNamed) {
  use_cpu();
  models::Mlp model({kFeatures, kClasses});
  const VariablePtr weight = model.parameters()[0];
  EXPECT_EQ(code_of([&] { amp::initialize(model, OptimizerSpec{}, "O0"); }), "E0819");
  auto [net, opt] = amp::initialize(model, optim::AdamW{}, "O0");
  const Batches b(0);
  const auto summed = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
    return accumulate(cross_entropy(net(x), y), opt);
  };
  EXPECT_EQ(code_of([&] { summed(b.x, b.label); }), "E0808");
  EXPECT_EQ(code_of([&] { compile(summed)(b.x, b.label); }), "E0808");
  const auto widened = [&](Tensor x) {
    x.emitter()->update(weight, x);
    return x;
  };
  EXPECT_EQ(code_of([&] { widened(b.x); }), "E0323");
  EXPECT_EQ(code_of([&] { compile(widened)(b.x); }), "E0323");
}

}  // namespace
}  // namespace aloft::e2e

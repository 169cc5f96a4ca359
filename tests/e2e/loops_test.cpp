// The loops of apex, torch.amp and MindSpore leave the same bits behind as minimize(); gradient
// accumulation and overflowed steps agree in both modes.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/grad_scaler.h"
#include "frontend/scale_loss.h"
#include "frontend/value_and_grad.h"
#include "models/mlp.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "optim/adamw.h"
#include "optim/sgd.h"

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
    {
      auto scaled_loss = amp::scale_loss(loss, opt);
      scaled_loss.backward();
    }
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
    EXPECT_EQ(opt.skipped->buffer->read_one<std::int64_t>(), 1);
    EXPECT_EQ(opt.applied->buffer->read_one<std::int64_t>(), 11);
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
    EXPECT_EQ(opt.applied->buffer->read_one<std::int64_t>(), 4);
  }
  EXPECT_EQ(states[0], states[1]);
}

// Micro-batches as loops of PyTorch write them: gradients are summed until a step takes them.
TEST_P(Loops, GradientsOfSeveralBackwardsAreSummed) {
  constexpr int kParts = 4;
  const auto trained = [](auto micro_step) {
    use_cpu();
    eager().clear_tape();
    manual_seed(2);
    models::Mlp model({kFeatures, 24, kClasses});
    auto [net, opt] =
        amp::initialize(model, optim::AdamW{.lr = 1e-2, .clip_norm = 0.5}, GetParam());
    for (int i = 0; i < 3 * kParts; ++i) {
      const Batches b(i);
      const Tensor loss = cross_entropy(net(b.x), b.label);
      micro_step(loss, opt, i % kParts == kParts - 1);
    }
    return std::pair{state_of(model, opt), opt.applied};
  };
  const auto apex = trained([](const Tensor& loss, Optimizer& opt, bool last) {
    // So that the scale is told once a step, as the others tell it.
    amp::scale_loss(loss * (1.0 / kParts), opt, {.delay_unscale = !last}).backward();
    if (last) amp::step(loss, opt);
  });
  const auto torch = trained([](const Tensor& loss, Optimizer& opt, bool last) {
    amp::GradScaler scaler(opt);
    scaler.scale(loss * (1.0 / kParts)).backward();
    if (!last) return;
    scaler.step(loss);
    scaler.update();
  });
  EXPECT_EQ(apex.first, torch.first);
  const auto ours = trained([](const Tensor& loss, Optimizer& opt, bool last) {
    if (opt.accumulation() == 1) opt.set_accumulation(kParts);
    last ? static_cast<void>(minimize(loss, opt)) : static_cast<void>(accumulate(loss, opt));
  });
  // A quarter of each gradient, or a quarter of the sum: powers of two, hence the same bits.
  for (const auto& [name, bytes] : apex.first)
    if (ours.first.contains(name)) {
      EXPECT_EQ(bytes, ours.first.at(name)) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Loops, testing::Values("O0", "O1:fp16", "O2:bf16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

// Behind an exception, or where a batch is to be left out after all.
TEST(Accumulation, ZeroGradDropsWhatWasSummed) {
  use_cpu();
  omp_set_num_threads(1);
  const auto trained = [](bool with_more, bool is_compiled) {
    eager().clear_tape();
    manual_seed(2);
    models::Mlp model({kFeatures, 24, kClasses});
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O0");
    opt.set_accumulation(2);
    auto part = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
      return accumulate(cross_entropy(net(x), y), opt);
    };
    auto whole = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
      return minimize(cross_entropy(net(x), y), opt);
    };
    auto compiled_part = compile(part);
    auto compiled_whole = compile(whole);
    const Batches a(0), b(1), c(2);
    if (with_more) {
      is_compiled ? compiled_part(c.x, c.label) : part(c.x, c.label);
      cross_entropy(net(c.x), c.label).backward();
      opt.zero_grad();
      for (const VariablePtr& p : model.parameters()) EXPECT_FALSE(grad_of(p).is_defined());
    }
    is_compiled ? compiled_part(a.x, a.label) : part(a.x, a.label);
    is_compiled ? compiled_whole(b.x, b.label) : whole(b.x, b.label);
    return state_of(model, opt);
  };
  const auto want = trained(false, false);
  for (const bool is_compiled : {false, true}) EXPECT_EQ(trained(true, is_compiled), want);
}

// Gradients that a loop looks at between its steps are those of the loss that it looks at.
TEST(LeftGradients, EveryStepDropsThemInBothModes) {
  use_cpu();
  omp_set_num_threads(1);
  enum Drops { Itself, TheStep, TheCompiledStep, ACompiledCall };
  const auto seen = [](Drops drops) {
    eager().clear_tape();
    eager().forget_gradients();
    manual_seed(2);
    models::Mlp model({kFeatures, 24, kClasses});
    auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.1}, "O0");
    const auto loss = [&net = net](Tensor x, Tensor y) { return cross_entropy(net(x), y); };
    const auto step = [&, &opt = opt](Tensor x, Tensor y) { return minimize(loss(x, y), opt); };
    auto compiled = compile(step);
    auto optimizer_drops = compile([&, &opt = opt](Tensor x) {
      opt.zero_grad();
      return x * 2.0;
    });
    auto module_drops = compile([&](Tensor x) {
      model.zero_grad();
      return x * 2.0;
    });
    std::vector<std::vector<double>> all;
    for (int i = 0; i < 4; ++i) {
      const Batches b(i);
      loss(b.x, b.label).backward();
      for (const VariablePtr& p : model.parameters()) all.push_back(grad_of(p).to_vector());
      if (drops == Itself) eager().forget_gradients(model.parameters());
      if (drops == ACompiledCall) {
        i % 2 == 0 ? optimizer_drops(b.x) : module_drops(b.x);
        for (const VariablePtr& p : model.parameters()) EXPECT_FALSE(grad_of(p).is_defined()) << i;
      }
      if (drops == TheCompiledStep)
        compiled(b.x, b.label);
      else
        step(b.x, b.label);
      for (const VariablePtr& p : model.parameters()) EXPECT_FALSE(grad_of(p).is_defined());
    }
    return all;
  };
  const auto want = seen(Itself);
  for (const Drops drops : {TheStep, TheCompiledStep, ACompiledCall}) EXPECT_EQ(seen(drops), want);
}

TEST(LeftGradients, AStepLeavesThoseOfOthersParameters) {
  use_cpu();
  eager().clear_tape();
  eager().forget_gradients();
  models::Mlp model({kFeatures, 24, kClasses});
  const auto all = model.parameters();
  Optimizer head(optim::Sgd{.lr = 0.1}, {all[2], all[3]}, scalar::no_scaler());
  const Batches b(0);
  cross_entropy(model(b.x), b.label).backward();
  minimize(cross_entropy(model(b.x), b.label), head);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(grad_of(all[i]).is_defined(), i < 2) << i;
}

// Two optimizers over parts of one model, in every form that PyTorch's users write.
class Parts : public testing::TestWithParam<bool> {};

TEST_P(Parts, OfAModelHaveOptimizersOfTheirOwn) {
  use_cpu();
  omp_set_num_threads(1);
  enum Form { Twice, GradientsFirst, Backward, ZeroedBetween, Together };
  const bool late = GetParam();  // what each loop keeps its losses for
  std::vector<std::map<std::string, std::string>> states;
  for (const Form form : {Twice, GradientsFirst, Backward, ZeroedBetween, Together})
    for (const bool is_compiled : {false, true}) {
      if (is_compiled && (form == Backward || form == ZeroedBetween)) continue;
      eager().clear_tape();
      manual_seed(2);
      models::Mlp model({kFeatures, 24, kClasses});
      const auto all = model.parameters();
      const auto spec = optim::Sgd{.lr = 0.1};
      Optimizer one(spec, {all[0], all[1]}, scalar::no_scaler());
      Optimizer two(spec, {all[2], all[3]}, scalar::no_scaler());
      Optimizer both(spec, all, scalar::no_scaler());
      auto step = [&](Tensor x, Tensor y) {
        const Tensor loss = cross_entropy(model(x), y);
        if (form == Twice) {
          minimize(loss, one);
          minimize(loss, two);
        } else if (form == GradientsFirst) {
          const auto first = scaled_gradients(loss, one), second = scaled_gradients(loss, two);
          apply_gradients(loss, first, one);
          apply_gradients(loss, second, two);
        } else if (form == Backward || form == ZeroedBetween) {
          loss.backward();
          amp::step(loss, one);
          if (form == ZeroedBetween) one.zero_grad();
          amp::step(loss, two);
        } else {
          minimize(loss, both);
        }
        return loss;
      };
      auto compiled = compile(step);
      std::vector<Tensor> losses;
      std::size_t tape = 0;
      for (int i = 0; i < 5; ++i) {
        const Batches b(i);
        const Tensor loss = is_compiled ? compiled(b.x, b.label) : step(b.x, b.label);
        if (late) losses.push_back(loss);
        if (i == 2) tape = eager().tape_size();
        if (i > 2) {
          EXPECT_LE(eager().tape_size(), tape);
        }
      }
      std::map<std::string, std::string> state;
      for (const VariablePtr& v : all) state[v->name.str()] = bytes_of(*v);
      states.push_back(state);
    }
  for (const auto& state : states) EXPECT_EQ(state, states[0]);
}

// An optimizer of a part that goes on leaves earlier losses, and what they came from, to nobody.
TEST_P(Parts, AnOptimizerOfAPartDoesNotGrow) {
  use_cpu();
  eager().clear_tape();
  models::Mlp model({kFeatures, 24, kClasses});
  Optimizer head(optim::Sgd{.lr = 0.1}, {model.parameters()[2], model.parameters()[3]},
                 scalar::no_scaler());
  std::vector<Tensor> losses;
  for (int i = 0; i < 50; ++i) {
    const Batches b(i);
    losses.push_back(cross_entropy(model(b.x), b.label));
    minimize(losses.back(), head);
    EXPECT_LT(eager().tape_size(), 64u);
  }
  EXPECT_THROW(losses.front().backward(), UserError);
}

INSTANTIATE_TEST_SUITE_P(All, Parts, testing::Bool());

TEST(LoopMistakes, AnUndefinedGradientIsNamedInBothModes) {
  use_cpu();
  models::Mlp model({kFeatures, kClasses});
  Optimizer opt(optim::Sgd{}, model.parameters(), scalar::no_scaler());
  auto step = [&](Tensor x, Tensor y) {
    const Tensor loss = cross_entropy(model(x), y);
    auto gradients = scaled_gradients(loss, opt);
    gradients[1] = Tensor();
    return apply_gradients(loss, gradients, opt);
  };
  auto compiled = compile(step);
  const Batches b(0);
  const std::string before = bytes_of(*model.parameters()[0]);
  for (const bool is_compiled : {false, true}) {
    try {
      is_compiled ? compiled(b.x, b.label) : step(b.x, b.label);
      ADD_FAILURE() << "taken";
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0302");
      EXPECT_NE(std::string(e.what()).find(model.parameters()[1]->name.str()), std::string::npos);
    }
  }
  EXPECT_EQ(bytes_of(*model.parameters()[0]), before);
}

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

// A function that is traced does once what a program should do in each call.
TEST(LoopMistakes, WhatAProgramCannotDoIsRefusedInItsTrace) {
  use_cpu();
  models::Mlp model({kFeatures, kClasses});
  auto [net, opt] = amp::initialize(model, optim::AdamW{}, "O0");
  const Batches b(0);
  const auto said = [&](auto call) -> std::string {
    try {
      compile([&](Tensor x, Tensor y) { return call(x, y); })(b.x, b.label);
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  const auto loss = [&net = net](Tensor x, Tensor y) { return cross_entropy(net(x), y); };
  opt.set_accumulation(2);
  accumulate(loss(b.x, b.label), opt);
  const auto sums = state_of(model, opt);
  const std::string begins_anew = said([&, &opt = opt](Tensor x, Tensor y) {
    opt.set_accumulation(2);
    return accumulate(loss(x, y), opt);
  });
  EXPECT_NE(begins_anew.find("E0802: set_accumulation()"), std::string::npos) << begins_anew;
  EXPECT_EQ(state_of(model, opt), sums);
  opt.set_accumulation(1);

  const std::string steps =
      said([&, &opt = opt](Tensor x, Tensor y) { return amp::step(loss(x, y), opt).loss_tensor; });
  EXPECT_NE(steps.find("E0305"), std::string::npos) << steps;
  EXPECT_NE(steps.find("minimize(loss, optimizer)"), std::string::npos) << steps;
  amp::GradScaler scaler(opt);
  scaler.scale(loss(b.x, b.label)).backward();  // what it left changes nothing of that
  EXPECT_EQ(
      said([&, &opt = opt](Tensor x, Tensor y) { return amp::step(loss(x, y), opt).loss_tensor; }),
      steps);
  EXPECT_NE(said([&](Tensor x, Tensor y) { return scaler.step(loss(x, y)).loss_tensor; }), "");
}

// Nothing is said of a place that nobody knows, an argument's.
TEST(LoopMistakes, AnArgumentIsMadeNowhere) {
  use_cpu();
  const Tensor one = from_floats({1}, {});
  const auto said = [&](auto call) -> std::string {
    try {
      compile(call)(one);
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  const auto reads = [](Tensor x) { return x * x.to_vector()[0]; };
  const auto reads_a_result = [](Tensor x) { return x * (x * 2.0).to_vector()[0]; };
  const auto goes_back = [](Tensor x) {
    x.backward();
    return x;
  };
  const std::pair<std::string, const char*> all[] = {{said(reads), "E0301"},
                                                     {said(goes_back), "E0305"}};
  for (const auto& [text, code] : all) {
    EXPECT_NE(text.find(code), std::string::npos) << text;
    EXPECT_EQ(text.find("\n  at "), std::string::npos) << text;
  }
  EXPECT_NE(said(reads_a_result).find("loops_test.cpp:"), std::string::npos);
}

}  // namespace
}  // namespace aloft::e2e

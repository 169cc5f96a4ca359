// amp::autocast: what runs in which type, in nested scopes, in functions that are traced, and with
// a GradScaler beside it.
#include "frontend/autocast.h"

#include <gtest/gtest.h>

#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/compile.h"
#include "frontend/grad_scaler.h"
#include "models/mlp.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "optim/adamw.h"

namespace aloft::e2e {
namespace {

Tensor ones(std::int64_t rows, std::int64_t columns) {
  return full({rows, columns}, 1.0, DType::F32);
}

TEST(Autocast, ScopesNestAndEnd) {
  use_cpu();
  const Tensor x = ones(3, 4), w = ones(4, 5);
  const auto type = [&] { return matmul(x, w).dtype(); };
  EXPECT_EQ(type(), DType::F32);
  EXPECT_FALSE(amp::is_autocast_enabled());
  {
    const amp::autocast outer;
    EXPECT_TRUE(amp::is_autocast_enabled());
    EXPECT_EQ(type(), DType::BF16);
    EXPECT_EQ(softmax(matmul(x, w)).dtype(), DType::F32);
    {
      const amp::autocast off({.enabled = false});
      EXPECT_FALSE(amp::is_autocast_enabled());
      EXPECT_EQ(type(), DType::F32);
      // What is low already stays low, as it is written.
      EXPECT_EQ(matmul(cast(x, DType::BF16), cast(w, DType::BF16)).dtype(), DType::BF16);
      const amp::autocast half({.dtype = DType::F16});
      EXPECT_EQ(type(), DType::F16);
    }
    EXPECT_EQ(type(), DType::BF16);
    const amp::autocast wide({.dtype = DType::F32});
    EXPECT_EQ(type(), DType::F32);
  }
  EXPECT_EQ(type(), DType::F32);
  EXPECT_EQ(code_of([] { amp::autocast scope({.dtype = DType::I32}); }), "E0833");
}

TEST(Autocast, CustomForwardsHaveTheirInputsCast) {
  use_cpu();
  std::vector<DType> seen;
  const auto f = amp::custom_fwd(
      [&](const Tensor& x, double factor) {
        seen.push_back(x.dtype());
        seen.push_back(matmul(x, transpose(x, {1, 0})).dtype());
        return x * factor;
      },
      DType::F32);
  const Tensor low = cast(ones(2, 3), DType::BF16);
  f(low, 2.0);
  EXPECT_EQ(seen, (std::vector{DType::BF16, DType::BF16}));
  const amp::autocast scope;
  seen.clear();
  EXPECT_EQ(f(low, 2.0).dtype(), DType::F32);
  EXPECT_EQ(seen, (std::vector{DType::F32, DType::F32}));
}

// As torch's loop: fp32 weights, autocast around the model, a scaler. The bits of O1.
TEST(Autocast, WithAScalerIsO1) {
  use_cpu();
  std::vector<std::map<std::string, std::string>> states;
  for (const bool is_torch : {false, true}) {
    manual_seed(2);
    models::Mlp model({12, 24, 5});
    const optim::AdamW spec{.lr = 1e-2};
    const auto data = [](int step) {
      std::vector<float> x;
      for (int i = 0; i < 9 * 12; ++i)
        x.push_back(static_cast<float>((i * 37 + step) % 19 - 9) / 7);
      return std::pair{from_floats(x, {9, 12}), from_ints({0, 1, 2, 3, 4, 0, 1, 2, 3}, {9})};
    };
    if (is_torch) {
      Optimizer opt(spec, model.parameters(), scalar::no_scaler());
      amp::GradScaler scaler;
      for (int i = 0; i < 6; ++i) {
        const auto [x, label] = data(i);
        Tensor logits;
        {
          const amp::autocast scope({.dtype = DType::F16});
          logits = model(x);
        }
        scaler.scale(cross_entropy(logits, label)).backward();
        scaler.step(opt);
        scaler.update();
      }
      states.push_back(state_of(model, opt));
    } else {
      auto [net, opt] = amp::initialize(model, spec, "O1:fp16");
      for (int i = 0; i < 6; ++i) {
        const auto [x, label] = data(i);
        minimize(cross_entropy(net(x), label), opt);
      }
      states.push_back(state_of(model, opt));
    }
  }
  for (auto& state : states)
    std::erase_if(state, [](const auto& v) { return v.first.starts_with("scaler."); });
  EXPECT_EQ(states[0], states[1]);
  EXPECT_FALSE(states[0].empty());
}

// Its operator() is no call(), so that nothing but its layers says that it is prepared.
struct Stack : nn::Module {
  nn::Linear up{*this, "up", 4, 8}, down{*this, "down", 8, 3};
  Tensor operator()(Operand x) const { return down(relu(up(x))); }
};

TEST(Autocast, APreparedModelThatIsCalledItselfKeepsItsPrecision) {
  use_cpu();
  for (const char* level : {"O1:bf16", "O2:bf16", "O3:bf16"}) {
    Stack model, plain;
    auto compiled = compile([&](const Tensor& t) {
      const amp::autocast scope({.dtype = DType::F16});
      return model(t);
    });
    auto [net, opt] = amp::initialize(model, optim::AdamW{}, level);
    const Tensor x = ones(2, 4);
    const std::vector<float> by_net = net(x).to_floats();
    const amp::autocast outer, scope({.dtype = DType::F16});
    for (const Tensor& y : {model(x), compiled(x)}) {
      EXPECT_EQ(y.dtype(), DType::BF16) << level;
      EXPECT_EQ(y.to_floats(), by_net) << level;
    }
    EXPECT_EQ(model.up(x).dtype(), DType::BF16) << level;
    EXPECT_EQ(plain(x).dtype(), DType::F16) << level;  // what nobody has prepared
    // What is off, as apex's disable_casts, is off for a model's own code: its layers compute in
    // the types that they are stored in, and x has to be of that type. The net keeps its precision.
    const amp::autocast off({.enabled = false});
    if (level == std::string("O1:bf16"))
      EXPECT_EQ(model(x).dtype(), DType::F32);
    else
      EXPECT_EQ(code_of([&] { model(x); }), "E0203") << level;
    EXPECT_EQ(net(x).to_floats(), by_net) << level;
  }
}

struct CallsInABlock : nn::Module {
  nn::Linear up{*this, "up", 4, 8};
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) {
      const amp::autocast scope({.dtype = DType::F16});
      return up(t);
    });
  }
};

TEST(Autocast, AScopeWithinAPreparedModelsCallGoverns) {
  use_cpu();
  CallsInABlock model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{}, "O1:bf16");
  EXPECT_EQ(model(ones(2, 4)).dtype(), DType::F16);
  const amp::autocast around({.dtype = DType::F16});
  EXPECT_EQ(model(ones(2, 4)).dtype(), DType::F16);
}

TEST(Autocast, HoldsInTracedFunctions) {
  use_cpu();
  const Tensor x = ones(3, 4), w = ones(4, 5);
  auto traced = compile([](const Tensor& a, const Tensor& b) {
    const amp::autocast scope;
    return matmul(a, b);
  });
  EXPECT_EQ(traced(x, w).dtype(), DType::BF16);
}

}  // namespace
}  // namespace aloft::e2e

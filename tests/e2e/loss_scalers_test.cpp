// MindSpore's loss scalers and managers in loops, eagerly and compiled.
#include "frontend/loss_scalers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/reshape.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

TEST(LossScalers, ScaleAndUnscaleWhatTheyAreGiven) {
  use_cpu();
  amp::StaticLossScaler fixed(1024);
  EXPECT_EQ(fixed.scale(from_floats({1.5f}, {1})).to_floats(), std::vector<float>{1536});
  const Tensor half = cast(from_floats({1.5f, 1.0f}, {2}), DType::F16);
  const std::vector<Tensor> back = fixed.unscale({half, from_floats({2}, {1})});
  EXPECT_EQ(back[0].dtype(), DType::F16);
  EXPECT_EQ(back[0].to_floats(), (std::vector<float>{1.5f / 1024, 1.0f / 1024}));
  EXPECT_EQ(back[1].to_floats(), std::vector<float>{2.0f / 1024});
  EXPECT_FALSE(fixed.adjust(amp::all_finite({half})));
  EXPECT_EQ(fixed.scale_value(), 1024);
  // Finite, though f32 has no norm of them.
  const Tensor large_ones = from_floats({3e38f, -3e38f}, {2});
  EXPECT_EQ(amp::all_finite({large_ones, large_ones}).item(), 1);
  // A scale that f16 has not.
  amp::StaticLossScaler large(131072);
  EXPECT_EQ(large.scale(cast(from_floats({0x1p-10f}, {1}), DType::F16)).to_floats(),
            std::vector<float>{128});
}

TEST(LossScalers, SeeWhatIsNotFiniteAnywhere) {
  use_cpu();
  const Tensor fine = from_floats({1, -2}, {2}), inf = from_floats({1, INFINITY}, {2}),
               nan = cast(from_floats({NAN}, {1}), DType::BF16);
  EXPECT_EQ(amp::all_finite({fine, fine}).dtype(), DType::Bool);
  EXPECT_EQ(amp::all_finite({fine, fine}).item(), 1);
  EXPECT_EQ(amp::all_finite({fine, inf}).item(), 0);
  EXPECT_EQ(amp::all_finite({nan, fine}).item(), 0);
  EXPECT_EQ(code_of([] { amp::all_finite({}); }), "E0302");
}

TEST(LossScalers, MoveInCompiledFunctionsToo) {
  use_cpu();
  std::vector<double> scales[2];
  for (const bool is_compiled : {false, true}) {
    amp::DynamicLossScaler scaler(8, 2, 2);
    auto step = [&](const Tensor& gradient) {
      const std::vector<Tensor> scaled = {scaler.scale(gradient)};
      const std::vector<Tensor> unscaled = scaler.unscale(scaled);
      scaler.adjust(amp::all_finite(unscaled));
      return unscaled[0];
    };
    auto compiled = compile(step);
    for (const float g : {1.0f, 2.0f, INFINITY, 1.0f, 1.0f, 1.0f, 1.0f}) {
      const Tensor x = from_floats({g}, {1});
      const Tensor back = is_compiled ? compiled(x) : step(x);
      EXPECT_EQ(back.to_floats()[0], g);
      scales[is_compiled].push_back(scaler.scale_value());
    }
  }
  EXPECT_EQ(scales[0], (std::vector<double>{8, 16, 8, 8, 16, 16, 32}));
  EXPECT_EQ(scales[1], scales[0]);
}

TEST(LossScaleManagers, AreRulesOfOptimizers) {
  use_cpu();
  struct One : nn::Module {
    VariablePtr w = add_parameter("w", {1}, [](float* to, std::int64_t) { *to = 1; });
    Tensor operator()(const Tensor& x) const { return reshape(use(w) * x, Shape{}); }
  } model;
  amp::DynamicLossScaleManager manager(64, 4, 2);
  Optimizer opt(optim::Sgd{.lr = 0.125}, model.parameters(), manager.rule());
  for (const float g : {1.0f, INFINITY, 1.0f, 1.0f, 1.0f}) {
    const StepResult r = minimize(model(from_floats({g}, {1})), opt);
    manager.update_loss_scale(r.skipped());
    EXPECT_EQ(opt.scale->to_floats()[0], manager.get_loss_scale());
  }
  EXPECT_EQ(manager.get_loss_scale(), 64);
  EXPECT_EQ(model.w->to_floats()[0], 0.5f);
  EXPECT_EQ(amp::FixedLossScaleManager().get_loss_scale(), 128);
}

TEST(LossScaleManagers, RefuseWhatTheyCannotKeep) {
  use_cpu();
  EXPECT_EQ(code_of([] { amp::FixedLossScaleManager(0.5); }), "E0814");
  EXPECT_EQ(code_of([] { amp::FixedLossScaleManager(128, false); }), "E0814");
  EXPECT_EQ(code_of([] { amp::DynamicLossScaleManager(16, 1); }), "E0814");
  EXPECT_EQ(code_of([] { amp::DynamicLossScaler(16, 2, 0); }), "E0814");
  EXPECT_EQ(code_of([] { amp::StaticLossScaler(NAN); }), "E0814");
  amp::DynamicLossScaleManager manager;
  for (int i = 0; i < 1000; ++i) manager.update_loss_scale(true);
  EXPECT_EQ(manager.get_loss_scale(), 1);
  EXPECT_EQ(code_of([&] { manager.update_loss_scale(true); }), "E0810");
}

}  // namespace
}  // namespace aloft::e2e

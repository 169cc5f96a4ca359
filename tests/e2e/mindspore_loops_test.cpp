// MindSpore's functional loops: value_and_grad with more than a loss, and the loop of its page on
// mixed precision, with a loss scaler of its own.
#include <gtest/gtest.h>

#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/loss_scalers.h"
#include "frontend/value_and_grad.h"
#include "mindspore/context.h"
#include "mindspore/mixed_precision.h"
#include "mindspore/update_cells.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "optim/momentum.h"

namespace aloft::e2e {
namespace {

struct Network : nn::Module {
  nn::Linear up{*this, "up", 4, 16};
  nn::Linear down{*this, "down", 16, 3};
  Tensor operator()(const Tensor& x) const { return down(relu(up(x))); }
};

Tensor rows() {
  return from_floats({1, 0, 0, 0.5f, 0, 1, 0, 0.25f, 0, 0, 1, 0.125f, 1, 0, 0, 0.75f}, {4, 4});
}
Tensor labels() { return from_ints({0, 1, 2, 0}, {4}); }

struct LossAndLogits {
  Tensor loss, logits;
  static constexpr auto parts() {
    return std::tuple{part("loss", &LossAndLogits::loss), part("logits", &LossAndLogits::logits)};
  }
};

TEST(ValueAndGrad, HandsOnWhatStandsBehindTheLoss) {
  use_cpu();
  std::map<std::string, std::string> states[3];
  for (const int form : {0, 1, 2}) {
    manual_seed(1);
    Network network;
    Optimizer opt(optim::Momentum{.lr = 0.1}, network.parameters(), scalar::fixed_scaler(8));
    const auto plain = [&](const Tensor& x, const Tensor& y) {
      return cross_entropy(network(x), y);
    };
    const auto pair = [&](const Tensor& x, const Tensor& y) {
      const Tensor logits = network(x);
      return std::pair{cross_entropy(logits, y), logits};
    };
    const auto structure = [&](const Tensor& x, const Tensor& y) {
      const Tensor logits = network(x);
      return LossAndLogits{cross_entropy(logits, y), logits};
    };
    for (int i = 0; i < 3; ++i) {
      if (form == 0) {
        const auto [loss, gradients] = value_and_grad(plain, opt)(rows(), labels());
        apply_gradients(loss, gradients, opt);
      } else if (form == 1) {
        auto step = compile([&](const Tensor& x, const Tensor& y) {
          const auto [value, gradients] = value_and_grad(pair, opt, {.has_aux = true})(x, y);
          return std::pair{apply_gradients(value.first, gradients, opt), value.second};
        });
        EXPECT_EQ(step(rows(), labels()).second.shape(), (Shape{4, 3}));
      } else {
        const auto [value, gradients] =
            value_and_grad(structure, opt, {.has_aux = true})(rows(), labels());
        EXPECT_EQ(value.logits.shape(), (Shape{4, 3}));
        // No gradient passes it.
        EXPECT_EQ(code_of([&logits = value.logits] { sum(logits).backward(); }), "E0322");
        apply_gradients(value.loss, gradients, opt);
      }
    }
    states[form] = state_of(network, opt);
  }
  EXPECT_EQ(states[1], states[0]);
  EXPECT_EQ(states[2], states[0]);
}

TEST(ValueAndGrad, TakesParametersWithoutAScale) {
  use_cpu();
  Network network;
  const auto loss_of = [&](const Tensor& x, const Tensor& y) {
    return cross_entropy(network(x), y);
  };
  const std::vector<VariablePtr> some = {network.down.bias, network.up.weight};
  const auto [loss, gradients] = value_and_grad(loss_of, some)(rows(), labels());
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_EQ(gradients[0].shape(), (Shape{3}));
  loss_of(rows(), labels()).backward();
  EXPECT_EQ(gradients[0].to_floats(), grad_of(network.down.bias).to_floats());
  EXPECT_EQ(gradients[1].to_floats(), grad_of(network.up.weight).to_floats());
  network.zero_grad();
}

TEST(UpdateCells, MoveTheirScaleByOverflows) {
  use_cpu();
  ms::DynamicLossScaleUpdateCell cell(1024, 4, 2);
  const auto told = [&](float overflow) {
    const Tensor word = cast(from_floats({overflow}, {1}), DType::Bool);
    const Tensor back = cell(reshape(word, {}));
    EXPECT_EQ(back.item(), overflow);
    return cell.scale_value();
  };
  EXPECT_EQ(told(1), 256);
  EXPECT_EQ(told(0), 256);
  EXPECT_EQ(told(0), 1024);  // two in a row
  EXPECT_EQ(cell.get_loss_scale(), 1024);
  for (int i = 0; i < 8; ++i) told(1);
  EXPECT_EQ(cell.scale_value(), 1);
  ms::FixedLossScaleUpdateCell fixed(128);
  fixed(cast(from_floats({1}, {1}), DType::Bool));
  EXPECT_EQ(fixed.scale_value(), 128);
  EXPECT_EQ(code_of([] { ms::DynamicLossScaleUpdateCell(0, 2, 1); }), "E0814");
  for (const Tensor& told : {from_floats({0.5f}, {}), from_floats({1, 0}, {2})})
    EXPECT_EQ(code_of([&] { cell(told); }), "E0803");
  EXPECT_EQ(code_of([] { ms::FixedLossScaleUpdateCell(0); }), "E0814");
}

// Of arguments, alone and beside those of parameters, in both modes.
TEST(ValueAndGrad, GivesGradientsOfArguments) {
  use_cpu();
  Network network;
  const auto loss_of = [&](const Tensor& x, const Tensor& y) {
    return cross_entropy(network(x), y);
  };
  const std::vector<VariablePtr> all = network.parameters();
  const auto [loss, inputs] = value_and_grad(loss_of, GradPosition{0})(rows(), labels());
  ASSERT_EQ(inputs.size(), 1u);
  ASSERT_EQ(inputs[0].shape(), rows().shape());
  // As a difference says.
  const std::vector<float> x = rows().to_floats(), slope = inputs[0].to_floats();
  for (const std::size_t i : {std::size_t{0}, x.size() - 1}) {
    constexpr float kStep = 1e-2f;
    const auto at = [&](float d) {
      std::vector<float> moved = x;
      moved[i] += d;
      return loss_of(from_floats(moved, {4, 4}), labels()).item();
    };
    EXPECT_NEAR(slope[i], (at(kStep) - at(-kStep)) / (2 * kStep), 1e-3) << i;
  }
  const auto both = value_and_grad(loss_of, GradPosition{0}, all);
  const auto eager = both(rows(), labels()).second;
  EXPECT_EQ(eager.first[0].to_floats(), slope);
  auto step = compile([&](const Tensor& data, const Tensor& label) {
    const auto [value, gradients] = both(data, label);
    return std::tuple{value, gradients.first[0], gradients.second[0]};
  });
  const auto compiled = step(rows(), labels());
  EXPECT_EQ(std::get<1>(compiled).to_floats(), slope);
  EXPECT_EQ(std::get<2>(compiled).to_floats(), eager.second[0].to_floats());
  for (const auto& [positions, word] : {std::pair{GradPosition{2}, "2 arguments"},
                                        {GradPosition{1}, "position 1"},
                                        {GradPosition{0, 0}, "twice"}})
    expect_words(refusal([&, &at = positions] { value_and_grad(loss_of, at)(rows(), labels()); }),
                 {"E0803", word});
  network.zero_grad();
}

// By its place, and not by its value: one tensor may be several arguments, and be read besides.
TEST(ValueAndGrad, AnArgumentIsItsPlace) {
  use_cpu();
  const auto product = [](const Tensor& a, const Tensor& b) { return sum(a * a * b); };
  const Tensor x = from_floats({1, 2, 3}, {3});
  using Floats = std::vector<float>;
  const auto first = value_and_grad(product, GradPosition{0});
  EXPECT_EQ(first(x, x).second[0].to_floats(), (Floats{2, 8, 18}));
  EXPECT_EQ(first(x, x * 2).second[0].to_floats(), (Floats{4, 16, 36}));
  const auto both = value_and_grad(product, GradPosition{1, 0})(x, x).second;
  EXPECT_EQ(both[0].to_floats(), (Floats{1, 4, 9}));
  EXPECT_EQ(both[1].to_floats(), (Floats{2, 8, 18}));
  auto step = compile([&](const Tensor& a, const Tensor& b) {
    return std::tuple{first(a, b).second[0], first(a, a).second[0], first(a, a * 2).second[0]};
  });
  const auto compiled = step(x, x);
  EXPECT_EQ(std::get<0>(compiled).to_floats(), (Floats{2, 8, 18}));
  EXPECT_EQ(std::get<1>(compiled).to_floats(), (Floats{2, 8, 18}));
  EXPECT_EQ(std::get<2>(compiled).to_floats(), (Floats{4, 16, 36}));
  const auto beside = [&](const Tensor& a) { return std::pair{sum(a * x), a + x}; };
  const auto [value, slope] = value_and_grad(beside, GradPosition{0}, {.has_aux = true})(x);
  EXPECT_EQ(slope[0].to_floats(), (Floats{1, 2, 3}));
  EXPECT_EQ(value.second.to_floats(), (Floats{2, 4, 6}));
  // What is no tensor is handed on as it is.
  const auto scaled = [](const Tensor& a, double by) { return sum(a * by); };
  EXPECT_EQ(value_and_grad(scaled, GradPosition{0})(x, 3.0).second[0].to_floats(),
            (Floats{3, 3, 3}));
}

TEST(ValueAndGrad, RefusesWhatIsNotAsItSays) {
  use_cpu();
  Network network;
  const auto plain = [&](const Tensor& x, const Tensor& y) { return cross_entropy(network(x), y); };
  const auto more = [&](const Tensor& x, const Tensor& y) {
    const Tensor logits = network(x);
    return std::pair{cross_entropy(logits, y), logits};
  };
  const auto rowwise = [&](const Tensor& x, const Tensor&) { return network(x); };
  const std::vector<VariablePtr> all = network.parameters();
  expect_words(refusal([&] { value_and_grad(plain, all, {.has_aux = true})(rows(), labels()); }),
               {"E0803", "a loss alone"});
  expect_words(refusal([&] { value_and_grad(more, all)(rows(), labels()); }),
               {"E0803", "{.has_aux = true}"});
  EXPECT_EQ(code_of([&] { value_and_grad(rowwise, all)(rows(), labels()); }), "E0803");
}

// The loop of the page: forward with a scaled loss, gradients, unscale, all_finite, the optimizer
// where they are finite, adjust.
TEST(MindsporeLoop, OfThePageOnMixedPrecision) {
  use_cpu();
  std::vector<double> losses[2];
  std::vector<double> scales[2];
  for (const bool is_compiled : {false, true}) {
    manual_seed(2);
    Network network;
    const auto net = amp::auto_mixed_precision(network, "O2");
    Optimizer optimizer(optim::Momentum{.lr = 0.1}, network.parameters(), scalar::no_scaler());
    amp::DynamicLossScaler loss_scaler(0x1p20, 2, 4);
    const auto forward_fn = [&](const Tensor& data, const Tensor& label) {
      const Tensor logits = net(data);
      const Tensor loss = cross_entropy(logits, label);
      return std::pair{loss_scaler.scale(loss), logits};
    };
    const auto grad_fn = value_and_grad(forward_fn, network.parameters(), {.has_aux = true});
    const auto train_step = [&](const Tensor& data, const Tensor& label) {
      const auto [value, gradients] = grad_fn(data, label);
      const Tensor loss = loss_scaler.unscale(value.first);
      const Tensor is_finite = amp::all_finite(gradients);
      // Skipped where it is not finite, without a branch.
      apply_gradients(loss, loss_scaler.unscale(gradients), optimizer);
      loss_scaler.adjust(is_finite);
      return loss;
    };
    auto jit = ms::jit(train_step);
    for (int i = 0; i < 16; ++i) {
      losses[is_compiled].push_back(
          (is_compiled ? jit(rows(), labels()) : train_step(rows(), labels())).item());
      scales[is_compiled].push_back(loss_scaler.scale_value());
    }
    EXPECT_LT(losses[is_compiled].back(), losses[is_compiled].front());
    EXPECT_LT(scales[is_compiled].front(), 0x1p20);  // f16 does not hold so much
    EXPECT_GT(scales[is_compiled].back(), 1);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(scales[0], scales[1]);
}

}  // namespace
}  // namespace aloft::e2e

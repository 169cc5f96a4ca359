// Parameters that somebody else writes: another thread, a program, whoever loads weights. What
// eager code computes from then on has the new values; what it holds keeps the old ones, or is
// refused.
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "models/mlp.h"
#include "models/state_dict.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kWidth = 20;

struct Trained {
  models::Mlp model{{kWidth, 32, 3}};
  std::pair<amp::Net<models::Mlp>, Optimizer> prepared;

  explicit Trained(const char* precision)
      : prepared(amp::initialize(model, optim::Sgd{.lr = 0.5}, precision)) {}
  Tensor loss() { return mean(square(prepared.first(spread(1, {8, kWidth})))); }
  void step() { minimize(loss(), prepared.second); }
  std::vector<double> gradients() const {
    std::vector<double> all;
    for (const VariablePtr& p : model.parameters()) {
      const Tensor g = grad_of(p);
      const auto v = g.is_defined() ? g.to_vector() : std::vector<double>{};
      all.insert(all.end(), v.begin(), v.end());
    }
    return all;
  }
};

void elsewhere(const std::function<void()>& f) {
  std::thread other([&] {
    omp_set_num_threads(1);
    f();
  });
  other.join();
}

void write(Trained& t, float value) {
  for (const VariablePtr& v : t.model.parameters())
    models::write_state(
        *v, 0, std::vector<float>(static_cast<std::size_t>(v->type.shape.max_numel()), value));
}

class WrittenValues : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    use_cpu();
    omp_set_num_threads(1);
    eager().clear_tape();
    eager().forget_gradients();
    manual_seed(3);
  }
};

// The loss at the values that are there, computed by a session that has seen none before.
double fresh_loss(Trained& t) {
  double loss = 0;
  elsewhere([&] { loss = t.loss().item(); });
  return loss;
}

TEST_P(WrittenValues, AreSeenWhereAnotherThreadTrained) {
  Trained t(GetParam());
  for (const bool grad : {true, false}) {
    const auto loss = [&] {
      const NoGrad no_grad;
      return t.loss().item();
    };
    const Tensor held = t.loss();
    const double before = grad ? t.loss().item() : loss();
    elsewhere([&] {
      for (int i = 0; i < 12; ++i) t.step();  // some are skipped until the loss scale fits
    });
    const double after = grad ? t.loss().item() : loss();
    EXPECT_NE(after, before);
    EXPECT_EQ(after, fresh_loss(t));
  }
}

// The other thread could not save the values that this one's loss was computed from.
TEST_P(WrittenValues, AHeldLossOfOverwrittenValuesIsRefused) {
  Trained t(GetParam());
  const Tensor held = t.loss();
  elsewhere([&] { t.step(); });
  try {
    held.backward();
    ADD_FAILURE() << "taken";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0321");
    EXPECT_NE(std::string(e.what()).find("another thread"), std::string::npos) << e.what();
  }
  t.loss().backward();
}

TEST_P(WrittenValues, AreSeenWhereTheyWereWrittenByHand) {
  Trained t(GetParam());
  t.loss().backward();
  const auto want = t.gradients();
  eager().forget_gradients();
  const Tensor held = t.loss();
  const VariablePtr w = t.model.parameters()[0];
  const Tensor weights = eager_session().state(w);
  const auto values = weights.to_vector();
  write(t, 0.25f);
  EXPECT_EQ(t.loss().item(), fresh_loss(t));
  EXPECT_EQ(weights.to_vector(), values);
  held.backward();
  EXPECT_EQ(t.gradients(), want);
}

TEST_P(WrittenValues, AreSeenBehindACompiledStep) {
  Trained t(GetParam());
  auto step = compile(
      [&](Tensor x) { return minimize(mean(square(t.prepared.first(x))), t.prepared.second); });
  const Tensor x = spread(1, {8, kWidth});
  step(x);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(t.loss().item(), fresh_loss(t));
    if (i == 1)
      elsewhere([&] { step(x); });
    else
      step(x);
  }
}

// What was computed before the model was prepared: masters take over memory that it read.
TEST_P(WrittenValues, InitializeKeepsWhatIsHeld) {
  models::Mlp model({kWidth, 32, 3});
  const auto loss = [&] { return mean(square(model(spread(1, {8, kWidth})))); };
  loss().backward();
  const VariablePtr w = model.parameters()[0];
  const auto want = grad_of(w).to_vector();
  const Tensor held = loss(), weights = eager_session().state(w);
  const auto values = weights.to_vector();
  eager().forget_gradients();
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.5}, GetParam());
  minimize(mean(square(net(spread(2, {8, kWidth})))), opt);
  EXPECT_EQ(weights.to_vector(), values);
  held.backward();
  EXPECT_EQ(grad_of(w).to_vector(), want);
}

INSTANTIATE_TEST_SUITE_P(All, WrittenValues, testing::Values("O0", "O1:bf16", "O2:bf16", "O2:fp16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

}  // namespace
}  // namespace aloft::e2e

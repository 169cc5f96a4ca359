// Casts, islands of f32 and losses written by hand, in every precision: what eager computes,
// compiled computes to the bit; what a cast to f32 asks for is done.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "aloft/loader.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "nn/batch_norm.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/conv1d.h"
#include "ops/lerp.h"
#include "ops/losses.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/unary.h"
#include "ops/where.h"
#include "optim/sgd.h"
#include "types/tolerance.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kRows = 6, kWidth = 16;

Tensor numbers(int seed, std::int64_t rows = kRows, std::int64_t columns = kWidth) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (float& v : values) v = static_cast<float>(random() % 4001) / 1000 - 2;
  return from_floats(values, {rows, columns});
}

struct Layers : nn::Module {
  nn::Linear a{*this, "a", kWidth, kWidth}, b{*this, "b", kWidth, kWidth};
  nn::LayerNorm norm{*this, "norm", kWidth};
};

// A program of the values seen so far, drawn from a seed: the same text for both modes.
class Drawn {
 public:
  Drawn(Layers& layers, unsigned seed, bool has_products)
      : layers_(layers), random_(seed), has_products_(has_products) {}

  Tensor run(std::vector<Tensor> values, int steps) {
    for (int i = 0; i < steps; ++i) values.push_back(step(values));
    return values.back();
  }

 private:
  unsigned draw(unsigned n) { return static_cast<unsigned>(random_() % n); }

  Tensor step(const std::vector<Tensor>& values) {
    // Late values more often than early ones.
    const auto any = [&] {
      const auto n = static_cast<unsigned>(values.size());
      return values[std::max(draw(n), draw(n))];
    };
    const Tensor x = any(), y = any();
    switch (draw(has_products_ ? 21 : 17)) {
      case 0:
        return x + y;
      case 1:
        return x - y;
      case 2:
        return tanh(x * y);
      case 3:
        return gelu(x);
      case 4:
        return square(x) * 0.25;
      case 5:
        return x * 0.7 + 0.1;
      case 6:
      case 7:
      case 8:
        return cast(x, DType::F32);
      case 9:
        return cast(x, DType::BF16);
      case 10:
        return cast(x, DType::F16);
      case 11:
        return where(greater(x, y), x, y);
      case 12:
        return maximum(x, y);
      case 13:
        return x - mean(x, {-1}, true);
      case 14:
        return softmax(x, -1) * 2.0;
      case 15:
        return tanh(exp(x * 0.1) - y);
      case 16:
        return cast(x, y.dtype()) * 0.5;
      case 17:
        return layers_.a(x);
      case 18:
        return layers_.b(x);
      case 19:
        return layers_.norm(x);
      default: {
        const Tensor p = cast(x, DType::F32), q = cast(y, DType::F32);
        return broadcast_like(mean(matmul(p, q, false, true), {-1}, true) * 0.1, p);
      }
    }
  }

  Layers& layers_;
  std::mt19937 random_;
  bool has_products_;
};

struct Model : Layers {
  unsigned seed = 0;
  Tensor hidden;  // what the last call drew may use none of the parameters, and a loss must
  Tensor operator()(const Tensor& x, const Tensor& y) {
    const Tensor h = b(relu(a(x)));
    hidden = mean(square(h));
    return Drawn(*this, seed, true).run({h, x, y}, 9);
  }
};

// Losses and the bytes of all state behind three steps.
std::pair<std::vector<double>, std::map<std::string, std::string>> trained(unsigned seed,
                                                                           const char* precision,
                                                                           bool is_compiled) {
  use_cpu();
  eager().clear_tape();
  omp_set_num_threads(1);
  manual_seed(seed);
  Model model;
  model.seed = seed;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.01}, precision);
  const auto step = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
    const Tensor out = net(x, y);
    const Tensor last = Drawn(model, seed + 1, false).run({x, y, out}, 4);
    const Tensor loss = mean(square(last)) + mean(abs(out)) * 0.5 + model.hidden * 0.25;
    model.hidden = Tensor();
    return minimize(loss, opt);
  };
  auto compiled = compile(step);
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) {
    const Tensor x = numbers(i), y = numbers(i + 50);
    const StepResult r = is_compiled ? compiled(x, y) : step(x, y);
    losses.push_back(std::isnan(r.loss()) ? -1 : r.loss());
    losses.push_back(std::isnan(r.grad_norm.item()) ? -1 : r.grad_norm.item());
    losses.push_back(r.skipped());
  }
  return {losses, state_of(model, opt)};
}

class Casts : public testing::TestWithParam<const char*> {};

TEST_P(Casts, DrawnProgramsAgreeInBothModes) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const auto eagerly = trained(seed, GetParam(), false),
               compiled = trained(seed, GetParam(), true);
    ASSERT_EQ(eagerly.first, compiled.first) << "seed " << seed;
    ASSERT_TRUE(eagerly.second == compiled.second) << "seed " << seed;
  }
}

// Loss of the first step, eager and compiled, which must agree.
template <class Loss>
double loss_of(const char* precision, Loss loss) {
  double seen[2];
  for (const bool is_compiled : {false, true}) {
    use_cpu();
    eager().clear_tape();
    omp_set_num_threads(1);
    manual_seed(3);
    Layers model;
    Optimizer opt = amp::prepare(model, optim::Sgd{.lr = 0.1}, parse_precision(precision));
    const auto step = [&](Tensor x, Tensor y) { return minimize(loss(model, x, y), opt); };
    auto compiled = compile(step);
    seen[is_compiled] =
        is_compiled ? compiled(numbers(1), numbers(2)).loss() : step(numbers(1), numbers(2)).loss();
  }
  EXPECT_EQ(seen[0], seen[1]) << precision;
  return seen[1];
}

// Predictions of the model, in its precision.
Tensor predicted(const Layers& m, const Tensor& x) {
  ModuleScope scope("", m.policy());
  return m.b(gelu(m.a(x)));
}

// A loss in f32 of what the network predicts, however it is written.
TEST_P(Casts, LossesWrittenByHandAreNotRounded) {
  const char* p = GetParam();
  const double given = loss_of(p, [](Layers& m, Tensor x, Tensor y) {
    return mse_loss(cast(predicted(m, x), DType::F32), y);
  });
  const auto close = [&](double loss) {
    EXPECT_NEAR(loss, given, allowed_error(DType::F32, 1, given)) << p;
  };
  close(loss_of(p, [](Layers& m, Tensor x, Tensor y) { return mse_loss(predicted(m, x), y); }));
  close(
      loss_of(p, [](Layers& m, Tensor x, Tensor y) { return mean(square(predicted(m, x) - y)); }));
  close(loss_of(p, [](Layers& m, Tensor x, Tensor y) {
    return mean(square(cast(predicted(m, x), DType::F32) - y));
  }));
  close(loss_of(p, [](Layers& m, Tensor x, Tensor y) {  // inside the model
    ModuleScope scope("", m.policy());
    return mean(square(cast(m.b(gelu(m.a(x))), DType::F32) - y));
  }));
  close(loss_of(p, [](Layers& m, Tensor x, Tensor y) {
    ModuleScope scope("", m.policy());
    return mean(mse_loss(m.b(gelu(m.a(x))), y, "none"));
  }));
}

TEST_P(Casts, LossesTakeTargetsOfAnyFloatType) {
  for (const DType t : {DType::F32, DType::BF16, DType::F16}) {
    const auto all = [t](Layers& m, Tensor x, Tensor y) {
      const Tensor z = predicted(m, x), target = cast(sigmoid(y), t);
      return mse_loss(z, target) + l1_loss(z, target) + huber_loss(z, target) +
             bce_with_logits(z, target) + kl_div(log_softmax(z), target);
    };
    EXPECT_GT(loss_of(GetParam(), all), 0) << name_of(t);
  }
}

// Numbers to predict, from the loader to a loss, in both modes.
TEST_P(Casts, LoadersHandOutFloatTargets) {
  ArrayData data;
  data.features = data.outputs = kWidth;
  for (int i = 0; i < 10 * kWidth; ++i) {
    data.values.push_back(static_cast<float>(i % 13) / 13);
    data.targets.push_back(static_cast<float>(i % 7) / 7);
  }
  std::vector<double> losses[2];
  for (const bool is_compiled : {false, true}) {
    use_cpu();
    manual_seed(3);
    Model model;
    auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.1}, GetParam());
    const auto step = [&, &opt = opt](Tensor x, Tensor y) {
      return minimize(mse_loss(predicted(model, x), y), opt);
    };
    auto compiled = compile(step);
    Loader loader(data, {.batch = 4, .seed = 2});
    for (auto [x, y] : loader) {
      EXPECT_EQ(y.dtype(), DType::F32);
      EXPECT_EQ(y.shape(), x.shape());
      losses[is_compiled].push_back((is_compiled ? compiled(x, y) : step(x, y)).loss());
    }
  }
  EXPECT_EQ(losses[0].size(), 3u);
  EXPECT_EQ(losses[0], losses[1]);
}

// Both modes cast a value once: what a second gradient adds up passes the same casts.
TEST_P(Casts, SecondGradientsAgreeInBothModes) {
  use_cpu();
  std::vector<float> values(30);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 37) % 23) / 11.5f - 1.03f;
  const Tensor x = from_floats(values, {6, 5});
  const auto gradient = [](const Tensor& of, const Tensor& wrt) {
    return current_emitter().gradients(of, full({}, 1.0), std::span(&wrt, 1), current_where())[0];
  };
  const std::function<Tensor(Tensor)> layers[] = {
      [](Tensor t) { return gelu(reciprocal(t)); },
      [](Tensor t) { return mish(exp(t)); },
      [](Tensor t) { return gelu(softmax(t)); },
  };
  for (std::size_t k = 0; k < std::size(layers); ++k) {
    const auto f = [&](Tensor t) {
      const auto y = [&] {
        ModuleScope scope("", Policy(parse_precision(GetParam())));
        return layers[k](t);
      }();
      const Tensor g = gradient(mean(cast(y, DType::F32)), t);
      return gradient(sum(square(cast(g, DType::F32))), t);
    };
    const auto eagerly = f(x).to_vector(), compiled = compile(f)(x).to_vector();
    for (std::size_t i = 0; i < eagerly.size(); ++i)  // f16 has no number for some of them
      EXPECT_TRUE(eagerly[i] == compiled[i] || (std::isnan(eagerly[i]) && std::isnan(compiled[i])))
          << k << " at " << i << ": " << eagerly[i] << ", compiled " << compiled[i];
  }
}

// A gradient is of the type of what it is taken of, whatever the backward phase computes in: a
// penalty on it (of a critic that reads x twice) is the same in both modes.
TEST_P(Casts, GradientsAreOfTheTypesOfWhatTheyAreTakenOf) {
  use_cpu();
  double losses[2] = {}, norms[2] = {};
  for (const bool is_compiled : {false, true}) {
    eager().clear_tape();
    manual_seed(5);
    Layers m;
    auto [net, opt] = amp::initialize(m, optim::Sgd{.lr = 1e-3}, GetParam());
    const auto step = [&, &opt = opt](Tensor x) {
      const Tensor y = [&] {
        ModuleScope scope("", m.policy());
        return cast(m.b(gelu(m.a(x))) + sum(x * 0.3, {1}, true), DType::F32);
      }();
      const Tensor g =
          current_emitter().gradients(sum(y), full({}, 1.0), std::span(&x, 1), current_where())[0];
      EXPECT_EQ(g.type(), x.type());
      return minimize(mean(y) + 0.01 * mean(square(sum(g * g, {1}) - 1.0)), opt);
    };
    auto compiled = compile(step);
    StepResult r;
    for (int i = 0; i < 3; ++i) r = is_compiled ? compiled(numbers(3)) : step(numbers(3));
    losses[is_compiled] = r.loss();
    norms[is_compiled] = r.grad_norm.item();
  }
  EXPECT_EQ(losses[0], losses[1]);
  const bool overflow = std::isnan(norms[0]) && std::isnan(norms[1]);  // f16, at its first scale
  EXPECT_TRUE(norms[0] == norms[1] || overflow) << norms[0] << ", compiled " << norms[1];
}

TEST(Gradients, OfANarrowValueAreNarrowWhereTheBackwardPhaseIsWide) {
  use_cpu();
  manual_seed(5);
  Layers m;
  auto [net, opt] = amp::initialize(m, optim::Sgd{}, "O2:bf16 backward=f32");
  const auto gradient = [&](Tensor x) {
    ModuleScope scope("", m.policy());
    const Tensor t = m.a(x), loss = mean(square(cast(m.b(gelu(t)), DType::F32)));
    const Tensor g =
        current_emitter().gradients(loss, full({}, 1.0), std::span(&t, 1), current_where())[0];
    EXPECT_EQ(g.dtype(), DType::BF16);
    return cast(g, DType::F32);
  };
  const std::vector<double> eagerly = gradient(numbers(3)).to_vector();
  EXPECT_EQ(compile(gradient)(numbers(3)).to_vector(), eagerly);
}

// What a norm reads may be wider than its own parameters: its scale is widened for it.
TEST(NarrowNorms, TakeWideOperands) {
  use_cpu();
  struct Normed : nn::Layer {
    nn::LayerNorm first{*this, "first", kWidth};
    nn::RMSNorm second{*this, "second", kWidth};
    nn::BatchNorm2d third{*this, "third", 4};
    nn::GroupNorm fourth{*this, "fourth", 2, 4};
    Tensor operator()(Operand x) const {
      const Tensor images = reshape(x.tensor, {kRows, 4, 2, kWidth / 8});
      const auto flat = [](const Tensor& t) { return reshape(t, {kRows, kWidth}); };
      return mean(square(first(x) + second(x) + flat(third(images)) + flat(fourth(images))));
    }
  };
  double losses[2] = {};
  for (const bool is_compiled : {false, true}) {
    manual_seed(5);
    Normed m;
    auto [net, opt] = amp::initialize(m, optim::Sgd{.lr = 0.1}, "O2:bf16 keep_norms_fp32=false");
    const auto step = [&net = net, &opt = opt](const Tensor& x) { return minimize(net(x), opt); };
    auto compiled = compile(step);
    for (int i = 0; i < 3; ++i)
      losses[is_compiled] = (is_compiled ? compiled(numbers(3)) : step(numbers(3))).loss();
  }
  EXPECT_EQ(losses[0], losses[1]);
}

// Ops that are made of others take operands of which the policy has cast some.
TEST_P(Casts, OpsWithoutKernelsTakeCastOperands) {
  use_cpu();
  manual_seed(5);
  Layers m;
  amp::initialize(m, optim::Sgd{.lr = 0.1}, GetParam());
  const std::function<Tensor(Tensor)> layers[] = {
      [&](Tensor x) { return lerp(x, m.a(x), full({}, 0.5)); },
      [&](Tensor x) {
        const Tensor w = reshape(slice(relu(m.a(x)), 0, 0, 4), {4, 1, kWidth});
        return conv1d(relu(reshape(x, {kRows, 1, kWidth})), w, Tensor());
      },
  };
  for (const auto& layer : layers) {
    const auto f = [&](Tensor x) {
      ModuleScope scope("", m.policy());
      return layer(x);
    };
    const Tensor x = numbers(7);
    EXPECT_EQ(compile(f)(x).to_vector(), f(x).to_vector());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Casts,
                         testing::Values("O0", "O1:bf16", "O1:fp16", "O2:bf16", "O2:fp16",
                                         "O3:bf16", "O3:fp16", "O2:bf16 backward=f16",
                                         "O2:bf16 backward=f32"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST(Island, StaysInF32UntilAProduct) {
  use_cpu();
  Layers m;
  amp::prepare(m, optim::Sgd{}, parse_precision("O2:bf16"));
  const auto types = [&](Tensor x) {
    ModuleScope scope("", m.policy());
    const Tensor h = m.a(x), wide = cast(h, DType::F32);
    const Tensor sum_of_both = wide + h, averaged = mean(wide, {-1});
    const Tensor products = matmul(wide, wide, false, true), mixed = m.b(wide);
    EXPECT_EQ(h.dtype(), DType::BF16);
    EXPECT_EQ((h * 2.0).dtype(), DType::BF16);
    for (const Tensor& t : {wide, sum_of_both, averaged, products, exp(wide), m.norm(wide)})
      EXPECT_EQ(t.dtype(), DType::F32);
    EXPECT_EQ(mixed.dtype(), DType::BF16);
    EXPECT_EQ(gelu(mixed).dtype(), DType::BF16);
    return averaged;
  };
  auto compiled = compile(types);
  EXPECT_EQ(compiled(numbers(1)).to_vector(), types(numbers(1)).to_vector());
}

}  // namespace
}  // namespace aloft::e2e

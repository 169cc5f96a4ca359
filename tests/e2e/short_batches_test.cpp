// Batches of fewer rows than a program was compiled for: the bits of a batch are the same in every
// program that takes it, and eagerly.
#include <gtest/gtest.h>

#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "models/lenet.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "nn/conv2d.h"
#include "nn/norm.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "ops/losses.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "optim/adamw.h"

namespace aloft::e2e {
namespace {

struct Sizes {
  std::int64_t bound, rows;
};

Tensor values(std::int64_t rows, std::vector<std::int64_t> sample) {
  sample.insert(sample.begin(), rows);
  const Shape shape = Shape::of(sample);
  std::vector<float> v(static_cast<std::size_t>(shape.max_numel()));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>((i * 7919 + 13) % 10007) / 5003 - 1;
  return from_floats(v, shape);
}

Tensor classes(std::int64_t rows, int count) {
  std::vector<std::int32_t> v(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::int32_t>(i * 7 % count);
  return from_ints(v, {rows});
}

// Bytes of all state, and the losses, behind a whole batch, a short one and a whole one again.
template <class M, class Step>
std::map<std::string, std::string> trained(M& model, const char* precision, bool is_compiled,
                                           const Sizes& sizes, Step one) {
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2, .clip_norm = 1.0}, precision);
  const auto step = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
    return minimize(one(net, x, y), opt);
  };
  auto compiled = compile(step);
  std::string losses;
  for (const std::int64_t rows : {sizes.bound, sizes.rows, sizes.bound}) {
    const auto [x, y] = one.batch(rows);
    losses += std::to_string((is_compiled ? compiled(x, y) : step(x, y)).loss()) + " ";
  }
  auto state = state_of(model, opt);
  state["losses"] = losses;
  return state;
}

// Names of what differs between the modes, in training `M`, which `make` gives.
template <class Make, class Step>
std::string difference(const char* precision, const Sizes& sizes, Make make, Step one) {
  std::map<std::string, std::string> states[2];
  for (const bool is_compiled : {false, true}) {
    use_cpu();
    eager().clear_tape();
    manual_seed(7);
    auto model = make();
    states[is_compiled] = trained(*model, precision, is_compiled, sizes, one);
  }
  std::string names;
  for (const auto& [name, bytes] : states[0])
    if (states[1].at(name) != bytes) names += name + " ";
  return names;
}

struct Classify {
  std::vector<std::int64_t> sample;
  int count;
  std::pair<Tensor, Tensor> batch(std::int64_t rows) const {
    return {values(rows, sample), classes(rows, count)};
  }
  template <class Net>
  Tensor operator()(Net& net, Tensor x, Tensor y) const {
    return cross_entropy(net(x), y);
  }
};

class ShortBatches : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { omp_set_num_threads(2); }
};

const Sizes kSizes[] = {{256, 200}, {64, 17}, {16, 3}};

TEST_P(ShortBatches, DenseNets) {
  for (const Sizes& s : kSizes) {
    const auto make = [] {
      return std::make_unique<models::Mlp>(std::vector<std::int64_t>{784, 512, 10});
    };
    EXPECT_EQ(difference(GetParam(), s, make, Classify{{784}, 10}), "")
        << s.rows << " of " << s.bound;
  }
}

TEST_P(ShortBatches, NarrowNetsOfManyRows) {
  for (const Sizes& s : {Sizes{9000, 7001}, Sizes{2500, 1030}}) {
    const auto make = [] {
      return std::make_unique<models::Mlp>(std::vector<std::int64_t>{6, 17, 3});
    };
    EXPECT_EQ(difference(GetParam(), s, make, Classify{{6}, 3}), "") << s.rows << " of " << s.bound;
  }
}

TEST_P(ShortBatches, ConvolutionalNets) {
  for (const Sizes& s : {Sizes{17, 5}}) {
    const auto lenet = [] {
      return std::make_unique<models::LeNet>(
          models::LeNetConfig{.height = 10, .width = 10, .filters = 8, .hidden = 16});
    };
    EXPECT_EQ(difference(GetParam(), s, lenet, Classify{{1, 10, 10}, 10}), "") << s.rows;
    const auto resnet = [] {
      return std::make_unique<models::ResNet>(
          models::ResNetConfig{.channels = 2, .classes = 5, .width = 8, .blocks = {1, 1}});
    };
    EXPECT_EQ(difference(GetParam(), s, resnet, Classify{{2, 8, 8}, 5}), "") << s.rows;
  }
}

// Every way that a convolution is cut: by groups of images, along its channels (more weight than
// images), strided, dilated, in groups.
struct Convolutions : nn::Module {
  nn::Conv2d strided{*this, "strided", 6, 64, 3, {.stride = 2, .padding = 1}};
  nn::Conv2d grouped{*this, "grouped", 64, 256, 3, {.padding = 2, .dilation = 2, .groups = 2}};
  nn::Conv2d heavy{*this, "heavy", 256, 512, 3, {.padding = 1, .bias = false}};
  nn::Conv2d point{*this, "point", 512, 5, 1};
  Tensor operator()(const Tensor& x) {
    const Tensor y = point(relu(heavy(relu(grouped(relu(strided(x)))))));
    return mean(y, {2, 3});
  }
};

TEST_P(ShortBatches, EveryCutOfAConvolution) {
  for (const Sizes& s : {Sizes{8, 3}, Sizes{19, 16}})
    EXPECT_EQ(
        difference(
            GetParam(), s, [] { return std::make_unique<Convolutions>(); }, Classify{{6, 7, 7}, 5}),
        "")
        << s.rows << " of " << s.bound;
}

// Products around the number of rows from which the weight is packed, and across blocks of rows.
TEST_P(ShortBatches, Products) {
  for (const Sizes& s : {Sizes{9, 8}, Sizes{40, 7}, Sizes{40, 9}, Sizes{130, 129}, Sizes{130, 2}}) {
    const auto make = [] {
      return std::make_unique<models::Mlp>(std::vector<std::int64_t>{96, 257, 130, 7});
    };
    EXPECT_EQ(difference(GetParam(), s, make, Classify{{96}, 7}), "")
        << s.rows << " of " << s.bound;
  }
}

struct Norms : nn::Module {
  nn::LayerNorm layer{*this, "layer", 96};
  nn::RMSNorm rms{*this, "rms", 96};
  nn::GroupNorm group{*this, "group", 4, 96};
  Tensor operator()(const Tensor& x) { return group(rms(layer(x))); }
};

struct Regress {
  std::pair<Tensor, Tensor> batch(std::int64_t rows) const {
    return {values(rows, {96}), values(rows, {96})};
  }
  template <class Net>
  Tensor operator()(Net& net, Tensor x, Tensor y) const {
    return mse_loss(net(x), y);
  }
};

TEST_P(ShortBatches, Norms) {
  for (const Sizes& s : {Sizes{1200, 811}, Sizes{33, 5}})
    EXPECT_EQ(difference(
                  GetParam(), s, [] { return std::make_unique<Norms>(); }, Regress{}),
              "")
        << s.rows << " of " << s.bound;
}

INSTANTIATE_TEST_SUITE_P(All, ShortBatches, testing::Values("O0", "O1:bf16", "O2:bf16", "O2:fp16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

TEST(ShortReductions, AreCutByTheRowsThatAreThere) {
  use_cpu();
  omp_set_num_threads(2);
  using F = Tensor (*)(Tensor);
  const F functions[] = {
      [](Tensor x) { return sum(x); },
      [](Tensor x) { return mean(x); },
      [](Tensor x) { return sum(x, {0}); },
      [](Tensor x) { return mean(square(x) + 1.0, {0}); },
      [](Tensor x) { return sum(x, {1}); },
      [](Tensor x) {
        return sum(reshape(x, {x.dim(0) * x.dim(1), 1}), {0});
      },
      [](Tensor x) { return matmul(x, x, true); },
      [](Tensor x) {
        return sum(abs(x), {0, 1});
      },
  };
  for (const std::int64_t columns : {1, 3, 40, 700, 9000}) {
    for (const Sizes& s : {Sizes{256, 200}, Sizes{1000, 37}, Sizes{5000, 4999}, Sizes{30000, 20001},
                           Sizes{12, 11}}) {
      if (columns * s.bound > 1 << 19) continue;
      int index = 0;
      for (const F f : functions) {
        auto compiled = compile(f);
        compiled(values(s.bound, {columns}));
        const Tensor x = values(s.rows, {columns});
        if (columns <= 700 || index != 6) {
          EXPECT_EQ(compiled(x).to_vector(), f(x).to_vector())
              << index << ": " << s.rows << " of " << s.bound << " x " << columns;
        }
        ++index;
      }
    }
  }
}

}  // namespace
}  // namespace aloft::e2e

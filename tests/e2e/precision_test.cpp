// Mixed precision trains as well as f32: the loss of 200 steps of a tiny GPT follows O0, as closely
// as docs/precision.md says, and without loss scaling fp16 does not where gradients underflow.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "e2e/training.h"
#include "models/gpt2.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "optim/adamw.h"
#include "scalar/philox.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kBatch = 4, kLength = 16, kVocab = 24;
constexpr int kSteps = 200, kTail = 50, kRuns = 8;

struct TinyGpt : models::Gpt2 {
  TinyGpt() : Gpt2(config()) {}
  static models::Gpt2Config config() {
    models::Gpt2Config c;
    c.layers = 2;
    c.heads = 2;
    c.dim = 32;
    c.vocab = kVocab;
    c.context = kLength;
    return c;
  }
};

// A walk over the letters whose every step is one of two: the loss has a floor well above zero, so
// that a share of it means something.
Batch walks(int seed, int step) {
  std::vector<std::int32_t> tokens, targets;
  for (std::int64_t r = 0; r < kBatch; ++r) {
    const scalar::RandomKey key{static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(step),
                                0, static_cast<std::uint64_t>(r)};
    std::int32_t at = static_cast<std::int32_t>(scalar::random_bits(key, 1000) % kVocab);
    for (std::int64_t t = 0; t < kLength; ++t) {
      tokens.push_back(at);
      const std::int32_t stride = scalar::random_bits(key, t) % 4 == 0 ? 7 : 1;
      at = (at + stride) % kVocab;
      targets.push_back(at);
    }
  }
  return {from_ints(tokens, {kBatch, kLength}), from_ints(targets, {kBatch, kLength})};
}

// The mean of the last 50 losses of run `seed`, of other weights and other data. `weight` scales
// the loss.
double tail(const std::string& precision, int seed, double weight) {
  const auto loss = [weight](auto& net, const Tensor& x, const Tensor& label) {
    return cross_entropy(net(x), label) * weight;
  };
  const TrainOptions o{.mode = Mode::Compiled,
                       .precision = precision,
                       .steps = kSteps,
                       .threads = 1,
                       .seed = static_cast<std::uint64_t>(seed),
                       .optimizer = optim::AdamW{.lr = 3e-3, .eps = 1e-16}};
  return train<TinyGpt>(
             o, [seed](int step) { return walks(seed, step); }, loss)
      .mean(kSteps - kTail, kSteps);
}

// How far a level is from O0: the root mean square over runs of the relative difference of their
// tails. One run meets O0 by chance, eight do not.
double distance(const std::string& precision, double weight = 1) {
  static std::map<std::pair<double, int>, double> wide;
  double squares = 0;
  for (int seed = 1; seed <= kRuns; ++seed) {
    double& o0 = wide[{weight, seed}];
    if (o0 == 0) o0 = tail("O0", seed, weight);
    squares += std::pow(tail(precision, seed, weight) / o0 - 1, 2);
  }
  const double distance = std::sqrt(squares / kRuns);
  std::printf("%-32s %.4f %% from O0\n", precision.c_str(), 100 * distance);
  return distance;
}

// The distance that docs/precision.md states in the row that begins with `label`.
double published(const std::string& label) {
  std::ifstream page("docs/precision.md");
  for (std::string line; std::getline(page, line);)
    if (const std::string start = "| " + label + " | "; line.starts_with(start))
      return std::stod(line.substr(start.size())) / 100;
  ADD_FAILURE() << "docs/precision.md has no row " << label;
  return 0;
}

// Runs repeat to the bit; processors differ in the order of their sums, and with that figures by up
// to a half. Three times either way is left.
void expect_as_published(const std::string& label, double measured) {
  EXPECT_LE(measured, 3 * published(label)) << label;
  EXPECT_GE(measured, published(label) / 3) << label;
}

TEST(Precision, TheLossFollowsO0AsCloselyAsThePageSays) {
  for (const char* precision :
       {"O1:bf16", "O1:fp16", "O2:bf16", "O2:fp16", "O2:bf16 backward=f16", "O3:bf16", "O3:fp16"})
    expect_as_published("`" + std::string(precision) + "`", distance(precision));
}

// Gradients of a loss a millionth the size lie below fp16's smallest number. A scale brings them
// back; Adam does not mind the size itself.
TEST(Precision, WithoutLossScalingFp16LearnsNothingWhereGradientsUnderflow) {
  constexpr double kTiny = 1e-6;
  expect_as_published("`O2:fp16`, loss of a millionth the size, dynamic loss scale",
                      distance("O2:fp16", kTiny));
  expect_as_published("the same with `loss_scale=none`",
                      distance("O2:fp16 loss_scale=none", kTiny));
}

}  // namespace
}  // namespace aloft::e2e

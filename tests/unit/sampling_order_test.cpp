// Tokens are drawn by selection in place of sorting: held to the definition, which sorts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "base/error.h"
#include "infer/likeliest.h"
#include "infer/sampling.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

using Tokens = std::vector<std::int32_t>;

Tokens sorted(const std::vector<float>& logits) {
  Tokens tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](std::int32_t a, std::int32_t b) { return logits[a] > logits[b]; });
  return tokens;
}

// What is left of `tokens` after each filter in turn, as sampling.h says it, whole lists sorted.
std::int32_t drawn_by_sorting(const std::vector<float>& logits, const SamplingOptions& o,
                              std::int64_t index) {
  Tokens tokens = sorted(logits);
  if (o.temperature == 0) return tokens[0];
  if (o.top_k > 0 && o.top_k < std::ssize(tokens)) tokens.resize(o.top_k);
  std::vector<double> weights;
  for (const std::int32_t t : tokens)
    weights.push_back(std::exp((logits[t] - logits[tokens[0]]) / o.temperature));
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto keep = [&](std::size_t count) {
    tokens.resize(count);
    weights.resize(count);
    total = std::accumulate(weights.begin(), weights.end(), 0.0);
  };
  double kept = 0;
  std::size_t count = 0;
  while (count < tokens.size() && (count == 0 || kept < o.top_p * total)) kept += weights[count++];
  keep(count);
  if (o.min_p > 0) {
    const auto least = [&](double w) { return w < o.min_p * weights[0]; };
    keep(std::max<std::size_t>(std::ranges::find_if(weights, least) - weights.begin(), 1));
  }
  if (o.typical_p < 1) {
    std::vector<double> surprise(tokens.size());
    double entropy = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const double share = weights[i] / total;
      surprise[i] = share > 0 ? -std::log(share) : std::numeric_limits<double>::infinity();
      if (share > 0) entropy += share * surprise[i];
    }
    std::vector<std::size_t> order(tokens.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(surprise[a] - entropy) < std::abs(surprise[b] - entropy);
    });
    kept = 0, count = 0;
    while (count < order.size() && (count == 0 || kept < o.typical_p * total))
      kept += weights[order[count++]];
    order.resize(count);
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < count; ++i)
      tokens[i] = tokens[order[i]], weights[i] = weights[order[i]];
    keep(count);
  }
  double at = scalar::uniform({o.seed, 0, 0, 0x67656e}, static_cast<std::uint64_t>(index)) * total;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if ((at -= weights[i]) < 0) return tokens[i];
  return tokens.back();
}

// Of several kinds: spread, in few values (so that many are equal), with signed zeros and -inf,
// all the same, and of any magnitude.
std::vector<float> random_logits(std::mt19937& random, std::size_t size, int kind) {
  std::vector<float> logits(size);
  std::normal_distribution<float> normal(0, 4);
  for (float& x : logits) {
    x = normal(random);
    if (kind == 1) x = std::round(x);
    if (kind == 2) x = random() % 3 == 0 ? -kInf : random() % 2 == 0 ? -0.0f : 0.0f;
    if (kind == 3) x = -7.25f;
    if (kind == 4) x = std::ldexp(x, static_cast<int>(random() % 200) - 140);
  }
  if (kind == 2) logits[random() % size] = 0.5f;
  return logits;
}

constexpr std::size_t kSizes[] = {1, 2, 5, 100, 2048, 2049, 5000, 20000};

TEST(SamplingOrder, TheLikeliestComeFirstAndTheSmallerOfEqualOnes) {
  std::mt19937 random(1);
  for (const std::size_t size : kSizes)
    for (int kind = 0; kind < 5; ++kind) {
      const std::vector<float> logits = random_logits(random, size, kind);
      const Tokens all = sorted(logits);
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, size / 3, size - 1, size, size + 7}) {
        const Tokens want(all.begin(), all.begin() + static_cast<long>(std::min(count, size)));
        EXPECT_EQ(likeliest_first(logits, count), want) << size << " " << kind << " " << count;
      }
    }
}

TEST(SamplingOrder, DrawsAreThoseOfTheDefinition) {
  std::mt19937 random(2);
  const auto one_of = [&](std::initializer_list<double> values) {
    return values.begin()[random() % values.size()];
  };
  for (int i = 0; i < 3000; ++i) {
    const std::size_t size = kSizes[random() % (i % 50 == 0 ? 8 : 5)];
    const std::vector<float> logits = random_logits(random, size, static_cast<int>(random() % 5));
    SamplingOptions o;
    o.temperature = one_of({0, 0.1, 0.7, 1, 1, 3, 100});
    o.top_k = static_cast<std::int64_t>(one_of({0, 0, 1, 2, 40, 3000}));
    o.top_p = one_of({1, 1, 0.95, 0.5, 0.01, 0});
    o.min_p = one_of({0, 0, 0.05, 0.5, 1});
    o.typical_p = one_of({1, 1, 0.9, 0.2, 0});
    o.seed = random();
    for (std::int64_t index = 0; index < 3; ++index)
      EXPECT_EQ(sample_token(logits, o, index), drawn_by_sorting(logits, o, index))
          << "size " << size << " temperature " << o.temperature << " top_k " << o.top_k
          << " top_p " << o.top_p << " min_p " << o.min_p << " typical_p " << o.typical_p
          << " seed " << o.seed << " index " << index;
  }
}

TEST(SamplingOrder, WhatIsNoNumberIsRefusedWhereverItStands) {
  for (const float bad : {std::nanf(""), kInf})
    for (const std::size_t at : {0, 1000, 4999}) {
      std::vector<float> logits(5000, 1.0f);
      logits[at] = bad;
      for (const double temperature : {0.0, 1.0})
        EXPECT_THROW(sample_token(logits, {.temperature = temperature}, 0), DivergedError);
    }
  EXPECT_THROW(sample_token(std::vector<float>(3000, -kInf), {}, 0), DivergedError);
}

}  // namespace
}  // namespace aloft

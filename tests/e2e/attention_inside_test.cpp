// What is inside an attention, computed once more for who asks: it is what the definition says, of
// grouped heads, windows, caps and short batches; compiled and eager; and no bit changes.
#include "ops/attention_inside.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "e2e/tapped_steps.h"
#include "numbers.h"
#include "ops/attention_qkv.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "passes/attention_taps.h"
#include "refusal.h"

namespace aloft::e2e {
namespace {

struct Inside {
  std::vector<double> scores, probabilities;
  double hidden = 0;  // how many scores the mask hides
};

// By the definition, in double. q [B, T, H, D], k [B, S, KV, D].
Inside naive(const AttentionAttrs& a, const Tensor& q, const Tensor& k) {
  const auto qs = q.shape().max_extents(), ks = k.shape().max_extents();
  const auto qv = q.to_vector(), kv = k.to_vector();
  const std::int64_t batch = qs[0], queries = qs[1], heads = qs[2], width = qs[3], keys = ks[1];
  const double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(width));
  Inside all;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < queries; ++i) {
        std::vector<double> row;
        const std::int64_t last = keys - queries + i;  // the query's own key
        for (std::int64_t j = 0; j < keys; ++j) {
          const std::int64_t own = h / (heads / ks[2]);
          double s = 0;
          for (std::int64_t d = 0; d < width; ++d)
            s += qv[static_cast<std::size_t>(((b * queries + i) * heads + h) * width + d)] *
                 kv[static_cast<std::size_t>(((b * keys + j) * ks[2] + own) * width + d)];
          s *= scale;
          if (a.cap > 0) s = a.cap * std::tanh(s / a.cap);
          const bool is_seen = !a.causal || (j <= last && (a.window == 0 || j > last - a.window));
          row.push_back(is_seen ? s : -std::numeric_limits<double>::infinity());
          all.hidden += !is_seen;
        }
        double sum = 0;
        for (const double s : row) sum += std::exp(s);
        for (const double s : row) {
          all.scores.push_back(s);
          all.probabilities.push_back(std::exp(s) / sum);
        }
      }
  return all;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(want[i])) {
      ASSERT_EQ(got[i], want[i]) << i;
      continue;
    }
    ASSERT_NEAR(got[i], want[i], 2e-6 * (1 + std::abs(want[i]))) << i;
  }
}

const Strings kInside = {"op:attention_*", "statistics:op:attention_*"};

void expect_inside(const Tensor& scores, const Tensor& probabilities, const Tensor& statistics,
                   const Inside& want) {
  expect_near(scores.to_vector(), want.scores);
  expect_near(probabilities.to_vector(), want.probabilities);
  // Of the scores that are seen, and how many are not.
  double max = -std::numeric_limits<double>::infinity(), min = -max, sum = 0, squares = 0;
  for (const double s : want.scores) {
    if (std::isinf(s)) continue;
    max = std::max(max, s);
    min = std::min(min, s);
    sum += s;
    squares += s * s;
  }
  const auto all = statistics.to_vector();
  const TensorStatistics s = TensorStatistics::from(all);
  const auto count = static_cast<double>(want.scores.size());
  EXPECT_EQ(s.elements, count);
  EXPECT_EQ(s.negative_inf, want.hidden);
  EXPECT_NEAR(s.max, max, 1e-5);
  EXPECT_NEAR(s.min, min, 1e-5);
  EXPECT_NEAR(s.mean, sum / (count - want.hidden), 1e-5);
  EXPECT_NEAR(s.norm, std::sqrt(squares), 1e-5 * (1 + std::sqrt(squares)));
  EXPECT_EQ(s.nan, 0);
}

struct Kind {
  AttentionAttrs attrs;
  std::int64_t queries, keys, heads, kv;
};

const Kind kKinds[] = {
    {{.causal = true}, 7, 7, 4, 4},
    {{.causal = true}, 5, 9, 4, 2},               // grouped heads, keys before the queries
    {{.causal = false, .scale = 2}, 3, 8, 2, 1},  // no mask
    {{.causal = true, .window = 3}, 8, 8, 6, 2},  // a sliding window
    {{.causal = true, .window = 2, .cap = 0.5}, 6, 11, 2, 2},
};

class InsideAttention : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    eager().clear_tape();
  }
};

TEST_F(InsideAttention, IsWhatTheDefinitionSays) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(to_attrs(kind.attrs).str());
    const auto f = [&](Tensor q, Tensor k) { return attention(q, k, k, kind.attrs); };
    auto seen = compile(f, {.taps = kInside});
    auto plain = compile(f);
    for (const std::int64_t batch : {3, 2}) {  // the second is a short one
      const Tensor q = spread(1, {batch, kind.queries, kind.heads, 8}) * 4.0,
                   k = spread(2, {batch, kind.keys, kind.kv, 8}) * 4.0;
      EXPECT_EQ(bits_of(seen(q, k)), bits_of(plain(q, k)));
      expect_inside(seen.tap("/attention_scores#0"), seen.tap("/attention_probabilities#0"),
                    seen.tap("statistics:/attention_scores#0"), naive(kind.attrs, q, k));
    }
  }
}

TEST_F(InsideAttention, OfHeadsSideBySide) {
  const AttentionQkvAttrs grouped{.heads = 4, .kv_heads = 2};
  const auto f = [&](Tensor x) { return attention_qkv(x, grouped); };
  auto seen = compile(f, {.taps = kInside});
  const Tensor x = spread(3, {2, 6, 8 * 5}) * 4.0;
  EXPECT_EQ(bits_of(seen(x)), bits_of(f(x)));
  const Tensor heads = reshape(x, {2, 6, 8, 5});
  std::vector<float> q, k;
  const auto all = heads.to_vector();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t head = i / 5 % 8;
    if (head < 4) q.push_back(static_cast<float>(all[i]));
    if (head >= 4 && head < 6) k.push_back(static_cast<float>(all[i]));
  }
  expect_inside(
      seen.tap("/attention_scores#0"), seen.tap("/attention_probabilities#0"),
      seen.tap("statistics:/attention_scores#0"),
      naive({.causal = true}, from_floats(q, {2, 6, 4, 5}), from_floats(k, {2, 6, 2, 5})));
}

TEST_F(InsideAttention, OfLowTypesIsInF32) {
  const auto f = [](Tensor q) {
    const Tensor low = cast(q, DType::BF16);
    return attention(low, low, low);
  };
  auto seen = compile(f, {.taps = kInside});
  const Tensor q = spread(1, {2, 6, 2, 8}) * 4.0;
  seen(q);
  EXPECT_EQ(seen.tap("/attention_scores#0").dtype(), DType::F32);
  const Tensor rounded = cast(cast(q, DType::BF16), DType::F32);
  expect_inside(seen.tap("/attention_scores#0"), seen.tap("/attention_probabilities#0"),
                seen.tap("statistics:/attention_scores#0"), naive({}, rounded, rounded));
}

TEST_F(InsideAttention, OfSeveralInAModuleIsNumbered) {
  const auto f = [](Tensor q) {
    const Tensor first = attention(q, q, q);
    return attention(first, q, q, {.causal = false}) + attention(q, first, q);
  };
  auto seen = compile(f, {.taps = {"/attention_scores"}});
  seen(spread(1, {1, 4, 1, 4}));
  std::vector<std::string> names;
  for (const Tap& t : seen.taps()) names.push_back(t.name);
  EXPECT_EQ(names, (Strings{"/attention_scores#0", "/attention_scores#1", "/attention_scores#2"}));
}

TEST_F(InsideAttention, IsNotMeantByPatternsThatDoNotNameIt) {
  for (const char* pattern : {"*", "op:*", "op:attention*", "/*"}) {
    auto seen = compile([](Tensor q) { return attention(q, q, q); }, {.taps = {pattern}});
    seen(spread(1, {1, 4, 1, 4}));
    for (const Tap& t : seen.taps()) EXPECT_EQ(t.name.find("scores"), std::string::npos) << t.name;
  }
  expect_words(refusal([&] {
                 compile([](Tensor q) { return exp(q); },
                         {.taps = {"op:attention_scores"}})(spread(1, {2, 2}));
               }),
               {"E0327", "op:attention_scores"});
}

// Training steps of a small GPT-2, the third with a short batch.
class InsideAttentionSteps : public testing::TestWithParam<const char*> {};

TEST_P(InsideAttentionSteps, ChangesNoBit) {
  using Steps = TappedSteps<std::string>;
  const auto steps = [&](int threads, const Strings& taps) {
    return tapped_steps(GetParam(), threads, taps, bits_of);
  };
  const Steps plain = steps(2, {});
  const Steps first = steps(1, kInside);
  const auto is_inside = [](const auto& tap) { return asks_for_attention(tap.first); };
  EXPECT_EQ(std::ranges::count_if(first.taps[0], is_inside), 8);  // of two blocks
  for (const int threads : {1, 2, 4}) {
    const Steps seen = steps(threads, kInside);
    EXPECT_EQ(seen.results, plain.results) << threads;
    EXPECT_EQ(seen.state, plain.state) << threads;
    EXPECT_EQ(seen.taps, first.taps) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(AtEachLevel, InsideAttentionSteps,
                         testing::Values("O0", "O2:bf16", "O2:fp16"));

}  // namespace
}  // namespace aloft::e2e

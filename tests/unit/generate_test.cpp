// Drawing texts: rows side by side, ends, and what a token costs beyond the context.
#include "infer/generate.h"

#include <gtest/gtest.h>

#include <memory>

#include "backends/cpu/cpu_backend.h"
#include "frontend/eager.h"
#include "frontend/random.h"
#include "models/gpt2.h"

namespace aloft {
namespace {

std::vector<float> all_logits(const Generator& g) {
  const auto logits = g.logits();
  return {logits.begin(), logits.end()};
}

std::unique_ptr<models::Gpt2> small_model(std::int64_t context) {
  use_device(cpu_device());
  manual_seed(3);
  models::Gpt2Config config;
  config.layers = 1;
  config.heads = 2;
  config.dim = 16;
  config.vocab = 40;
  config.context = context;
  config.init_deviation = 0.5;  // far from uniform
  return std::make_unique<models::Gpt2>(config);
}

DrawOptions drawing(std::int64_t tokens) {
  DrawOptions o;
  o.tokens = tokens;
  o.sampling.seed = 11;
  return o;
}

constexpr std::int32_t kPrompt[] = {5, 6, 7};

// Twice what a cache that never fills would cost, wherever the token stands.
TEST(Generate, ATokenBeyondTheContextCostsWhatOthersCost) {
  for (const std::int64_t context : {1, 2, 3, 8, 32, 256}) {
    const auto model = small_model(context);
    Generator generator(*model);
    const std::int64_t tokens = 6 * context + 10;
    const auto texts = draw_texts(generator, kPrompt, drawing(tokens));
    EXPECT_EQ(std::ssize(texts[0].tokens), tokens);
    EXPECT_GT(generator.times_full(), 4) << context;
    EXPECT_LE(generator.tokens_fed(), 2 * (tokens + 3) + context) << context;
  }
}

// What is written past the context is what the model writes behind the part that was kept.
TEST(Generate, TheNewerHalfIsWhatTheModelSees) {
  const auto model = small_model(8);
  Generator generator(*model);
  const auto text = draw_texts(generator, kPrompt, drawing(6))[0].tokens;
  EXPECT_EQ(generator.times_full(), 0);
  generator.feed(text.back());  // the ninth
  EXPECT_EQ(generator.times_full(), 1);
  const std::vector<float> seen = all_logits(generator);
  generator.start(std::vector<std::int32_t>(text.end() - 4, text.end()));
  const std::vector<float> alone = all_logits(generator);
  EXPECT_EQ(seen, alone);
}

// A cache with room for what will come, in a model that reads much more.
TEST(Generate, AShortCacheWritesWhatALongOneWrites) {
  const auto model = small_model(2000);
  Generator all(*model);
  const auto expected = draw_texts(all, kPrompt, drawing(40))[0].tokens;
  Generator some(*model, 0, 1, "", std::ssize(kPrompt) + 40);
  EXPECT_EQ(draw_texts(some, kPrompt, drawing(40))[0].tokens, expected);
  EXPECT_EQ(some.times_full(), 0);
}

TEST(Generate, ARowWritesWhatItWouldWriteAlone) {
  const auto model = small_model(16);
  std::vector<std::vector<std::int32_t>> alone;
  for (std::uint64_t row = 0; row < 3; ++row) {
    Generator one(*model);
    DrawOptions o = drawing(40);
    o.sampling.seed += row;
    alone.push_back(draw_texts(one, kPrompt, o)[0].tokens);
  }
  Generator three(*model, 0, 3);
  const auto texts = draw_texts(three, kPrompt, drawing(40));
  ASSERT_EQ(texts.size(), 3u);
  for (std::size_t row = 0; row < 3; ++row) EXPECT_EQ(texts[row].tokens, alone[row]) << row;
  EXPECT_NE(texts[0].tokens, texts[1].tokens);
}

TEST(Generate, ATextEndsAtItsEnd) {
  const auto model = small_model(16);
  Generator generator(*model, 0, 4);
  const auto whole = draw_texts(generator, kPrompt, drawing(60));
  DrawOptions o = drawing(60);
  o.ends = {whole[2].tokens[7]};
  std::vector<std::int64_t> heard(4);
  const auto texts =
      draw_texts(generator, kPrompt, o, [&](std::int64_t row, std::int32_t) { ++heard[row]; });
  for (std::size_t row = 0; row < 4; ++row) {
    const auto& all = whole[row].tokens;
    const auto end = std::find(all.begin(), all.end(), o.ends[0]);
    EXPECT_EQ(texts[row].tokens, std::vector<std::int32_t>(all.begin(), end)) << row;
    EXPECT_EQ(texts[row].ended, end != all.end()) << row;
    EXPECT_EQ(heard[row], std::ssize(texts[row].tokens));
  }
  EXPECT_TRUE(texts[2].ended);
}

}  // namespace
}  // namespace aloft

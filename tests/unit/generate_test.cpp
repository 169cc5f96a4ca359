// Drawing texts: rows side by side, ends, and what a token costs beyond the context.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "frontend/eager.h"
#include "frontend/random.h"
#include "infer/draw_texts.h"
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
    EXPECT_EQ(texts[row].ended(), end != all.end()) << row;
    EXPECT_EQ(heard[row], std::ssize(texts[row].tokens));
  }
  EXPECT_TRUE(texts[2].ended());
}

// Prompts of several lengths, one of them so long that its row is full on the way, in batches of
// every size.
TEST(Generate, APromptWritesWhatItWouldWriteAlone) {
  const auto model = small_model(16);
  std::vector<TextStart> starts = {{{5, 6, 7}, 11, 0},
                                   {{9}, 11, 1},
                                   {std::vector<std::int32_t>(12, 8), 11, 2},
                                   {{1, 2, 3, 4, 5, 6}, 11, 3},
                                   {std::vector<std::int32_t>(40, 3), 11, 4}};
  for (const double temperature : {0.0, 1.0})
    for (const std::int64_t tokens : {4, 30}) {
      DrawOptions o = drawing(tokens);
      o.sampling.temperature = temperature;
      std::vector<std::vector<std::int32_t>> alone;
      for (const TextStart& start : starts) {
        Generator one(*model);
        alone.push_back(draw_texts(one, {&start, 1}, o)[0].tokens);
      }
      for (const std::size_t rows : {1, 2, 3, 5, 7}) {
        Generator generator(*model, 0, static_cast<std::int64_t>(rows), "",
                            std::numeric_limits<std::int64_t>::max(), RowLengths::Own);
        for (std::size_t at = 0; at < starts.size(); at += rows) {
          const std::span<const TextStart> batch(starts.data() + at,
                                                 std::min(rows, starts.size() - at));
          const auto texts = draw_texts(generator, batch, o);
          ASSERT_EQ(texts.size(), batch.size());
          for (std::size_t i = 0; i < texts.size(); ++i)
            EXPECT_EQ(texts[i].tokens, alone[at + i]) << rows << " rows, text " << at + i;
        }
      }
    }
}

// Texts that end at several places, in fewer rows than there are texts: a row takes the next text
// while the others go on, also where it has no room, where it is full, and with no token before it.
TEST(Generate, ARowThatBeginsAnewWritesWhatItWouldWriteAlone) {
  const auto model = small_model(16);
  const std::vector<std::vector<std::int32_t>> prompts = {{5, 6, 7},
                                                          {9},
                                                          std::vector<std::int32_t>(12, 8),
                                                          {1, 2, 3, 4, 5, 6},
                                                          {4, 4},
                                                          std::vector<std::int32_t>(40, 3),
                                                          {7},
                                                          {2, 9, 1},
                                                          {3, 1},
                                                          std::vector<std::int32_t>(15, 5)};
  std::vector<TextStart> starts;
  for (std::size_t i = 0; i < prompts.size(); ++i) starts.push_back({prompts[i], 11, i});
  for (const double temperature : {0.0, 1.0})
    for (const std::int64_t tokens : {1, 4, 9, 30}) {
      DrawOptions o = drawing(tokens);
      o.sampling.temperature = temperature;
      // Where a text ends before it has all its tokens.
      const auto stops = [](std::int64_t text, std::int64_t drawn) {
        return text % 3 != 1 && drawn == 2 + text % 5;
      };
      std::vector<std::vector<std::int32_t>> alone;
      for (std::size_t i = 0; i < starts.size(); ++i) {
        Generator one(*model);
        std::int64_t drawn = 0;
        o.stops = [&](std::int64_t, std::int32_t) {
          return stops(static_cast<std::int64_t>(i), ++drawn);
        };
        alone.push_back(draw_texts(one, {&starts[i], 1}, o)[0].tokens);
      }
      for (const std::int64_t rows : {1, 2, 3, 7, 12}) {
        Generator generator(*model, 0, rows, "", std::numeric_limits<std::int64_t>::max(),
                            RowLengths::Renewed);
        for (int again = 0; again < 2; ++again) {
          std::vector<std::int64_t> drawn(starts.size()), done;
          o.stops = [&](std::int64_t text, std::int32_t) { return stops(text, ++drawn[text]); };
          o.done = [&](std::int64_t text, const DrawnText&) { done.push_back(text); };
          const auto texts = draw_texts(generator, starts, o);
          ASSERT_EQ(texts.size(), starts.size());
          for (std::size_t i = 0; i < texts.size(); ++i)
            EXPECT_EQ(texts[i].tokens, alone[i]) << rows << " rows, text " << i;
          std::ranges::sort(done);
          for (std::size_t i = 0; i < starts.size(); ++i)
            EXPECT_EQ(done.at(i), static_cast<std::int64_t>(i));
        }
        o.done = {};
      }
    }
}

TEST(Generate, TextsOfNoTokensAreDoneToo) {
  const auto model = small_model(64);
  Generator generator(*model, 0, 2, "", std::numeric_limits<std::int64_t>::max(),
                      RowLengths::Renewed);
  const std::vector<TextStart> starts = {{{1, 2}}, {{3}}, {{4, 5, 6}}};
  std::vector<std::int64_t> done;
  DrawOptions o;
  o.tokens = 0;
  o.done = [&](std::int64_t text, const DrawnText&) { done.push_back(text); };
  draw_texts(generator, starts, o);
  EXPECT_EQ(done, (std::vector<std::int64_t>{0, 1, 2}));
}

// What the others have is kept: nothing of it is fed once more.
TEST(Generate, ARowThatBeginsAnewFeedsItsOwnPromptAlone) {
  const auto model = small_model(64);
  Generator generator(*model, 0, 2, "", std::numeric_limits<std::int64_t>::max(),
                      RowLengths::Renewed);
  const std::vector<std::vector<std::int32_t>> rows = {{1, 2, 3, 4}, {5, 6}};
  generator.start_each(rows);
  EXPECT_EQ(generator.tokens_fed(), 4);
  const std::vector<std::int32_t> longer(9, 3), next = {7, 8};
  generator.begin(1, longer);
  EXPECT_EQ(generator.tokens_fed(), 4 + 8);
  generator.feed(next);
  EXPECT_EQ(generator.tokens_fed(), 4 + 8 + 1);
  Generator one(*model),
      own(*model, 0, 2, "", std::numeric_limits<std::int64_t>::max(), RowLengths::Own);
  one.start(longer);
  const HostRead<float> got = generator.logits(INT64_MAX, 1), want = one.logits();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
  own.start_each(rows);
  EXPECT_THROW(own.begin(1, longer), UserError);
  EXPECT_THROW(generator.begin(2, longer), UserError);
  EXPECT_THROW(generator.begin(1, {}), UserError);
}

// The draws of a text are its own: of the same prompt and seed, another stream writes another text.
TEST(Generate, TextsOfOneSeedAreDrawnApart) {
  const auto model = small_model(32);
  Generator generator(*model, 0, 2);
  const std::vector<TextStart> starts = {{{5, 6, 7}, 11, 0}, {{5, 6, 7}, 11, 1}};
  const auto texts = draw_texts(generator, starts, drawing(20));
  EXPECT_NE(texts[0].tokens, texts[1].tokens);
  EXPECT_EQ(texts[0].tokens, draw_texts(generator, kPrompt, drawing(20))[0].tokens);
}

// A row that is left takes no room: the other goes on until it is full itself.
TEST(Generate, ARowThatIsLeftHoldsNobody) {
  const auto model = small_model(16);
  Generator generator(*model, 0, 2, "", std::numeric_limits<std::int64_t>::max(), RowLengths::Own);
  const std::vector<std::vector<std::int32_t>> rows = {std::vector<std::int32_t>(15, 4), {5, 6}};
  generator.start_each(rows);
  generator.leave(0);
  const std::vector<std::int32_t> next = {1, 7};
  for (int i = 0; i < 10; ++i) generator.feed(next);
  EXPECT_EQ(generator.times_full(), 0);
  EXPECT_LT(generator.tokens_fed(), 30);  // once more from its beginning, and no more
  Generator one(*model);
  std::vector<std::int32_t> same = {5, 6};
  same.insert(same.end(), 10, 7);
  one.start(same);
  const auto got = generator.logits(INT64_MAX, 1), want = one.logits();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

TEST(Generate, WhatTheCacheHoldsIsNotFedAgain) {
  const auto model = small_model(200);
  Generator generator(*model);
  std::vector<std::int32_t> said;
  for (int i = 0; i < 90; ++i) said.push_back(i * 7 % 40);
  EXPECT_EQ(generator.start_again(said), 0u);
  const std::int64_t first = generator.tokens_fed();
  generator.feed(3);
  said.insert(said.end(), {3, 9, 2, 2, 5});
  EXPECT_EQ(generator.start_again(said), 91u);
  EXPECT_EQ(generator.tokens_fed(), first + 1 + 4);
  const std::vector<float> kept = all_logits(generator);
  generator.start(said);
  const std::vector<float> whole = all_logits(generator);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(kept[i], whole[i], 1e-5) << i;
  // Another text from the third token on, and a part of what stands there: the last token is fed.
  said[2] += 1;
  EXPECT_EQ(generator.start_again(said), 2u);
  const std::vector<float> other = all_logits(generator);
  generator.start(said);
  const std::vector<float> fresh = all_logits(generator);
  for (std::size_t i = 0; i < fresh.size(); ++i) EXPECT_NEAR(other[i], fresh[i], 1e-5) << i;
  said.resize(50);
  EXPECT_EQ(generator.start_again(said), 49u);
}

TEST(Generate, RowsGoOnFromOneAnother) {
  const auto model = small_model(64);
  Generator generator(*model, 0, 3);
  generator.start(kPrompt);
  const std::vector<std::int32_t> first = {1, 2, 3}, second = {4, 5, 6};
  generator.feed(first);
  generator.reorder(std::vector<std::int64_t>{2, 0, 2});
  generator.feed(second);
  const std::vector<std::vector<std::int32_t>> whole = {
      {5, 6, 7, 3, 4}, {5, 6, 7, 1, 5}, {5, 6, 7, 3, 6}};
  for (std::int64_t row = 0; row < 3; ++row) {
    Generator one(*model);
    one.start(whole[static_cast<std::size_t>(row)]);
    const auto got = generator.logits(INT64_MAX, row), want = one.logits();
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << row;
  }
}

TEST(Generate, RowsThatDoNotFitAreRefused) {
  const auto model = small_model(16);
  Generator equal(*model, 0, 2);
  const std::vector<std::vector<std::int32_t>> uneven = {{1, 2}, {3}}, three = {{1}, {2}, {3}};
  EXPECT_THROW(equal.start_each(uneven), UserError);
  EXPECT_THROW(equal.start_each(three), UserError);
  equal.start(kPrompt);
  EXPECT_THROW(equal.leave(2), UserError);
  EXPECT_THROW(equal.reorder(std::vector<std::int64_t>{0}), UserError);
  EXPECT_THROW(equal.reorder(std::vector<std::int64_t>{0, 2}), UserError);
}

}  // namespace
}  // namespace aloft

// How a token is drawn: penalties and filters by their definitions, and strings that end a text.
#include "infer/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "infer/stop_strings.h"

namespace aloft {
namespace {

// Probabilities 0.5, 0.25, 0.125, 0.0625, 0.0625.
const std::vector<float> kLogits = {std::log(8.0f), std::log(4.0f), std::log(2.0f), 0.0f, 0.0f};

template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return std::string(e.code());
  }
  return "none";
}

std::set<std::int32_t> drawn(const SamplingOptions& o, const TextSoFar& text = {}) {
  std::set<std::int32_t> tokens;
  for (std::int64_t i = 0; i < 2000; ++i) tokens.insert(sample_token(kLogits, o, i, text));
  return tokens;
}

TEST(Sampling, FiltersLeaveWhatTheirDefinitionsLeave) {
  using Tokens = std::set<std::int32_t>;
  EXPECT_EQ(drawn({}), (Tokens{0, 1, 2, 3, 4}));
  EXPECT_EQ(drawn({.top_k = 2}), (Tokens{0, 1}));
  EXPECT_EQ(drawn({.top_p = 0.7}), (Tokens{0, 1}));
  EXPECT_EQ(drawn({.min_p = 0.2}), (Tokens{0, 1, 2}));
  EXPECT_EQ(drawn({.min_p = 0.3}), (Tokens{0, 1}));
  EXPECT_EQ(drawn({.min_p = 1}), (Tokens{0}));
  // Surprises 0.69, 1.39, 2.08, 2.77, 2.77; their mean is 1.30: token 1, then 0, then 2 are
  // nearest.
  EXPECT_EQ(drawn({.typical_p = 0.2}), (Tokens{1}));
  EXPECT_EQ(drawn({.typical_p = 0.7}), (Tokens{0, 1}));
  EXPECT_EQ(drawn({.typical_p = 0.8}), (Tokens{0, 1, 2}));
  EXPECT_EQ(drawn({.top_k = 4, .min_p = 0.2}), (Tokens{0, 1, 2}));
}

TEST(Sampling, WhatFiltersLeaveKeepsItsShares) {
  std::map<std::int32_t, int> times;
  for (std::int64_t i = 0; i < 30000; ++i) ++times[sample_token(kLogits, {.min_p = 0.2}, i)];
  EXPECT_NEAR(times[0] / 30000.0, 8.0 / 14, 0.01);
  EXPECT_NEAR(times[1] / 30000.0, 4.0 / 14, 0.01);
}

TEST(Sampling, PenaltiesMoveWhatTheTextHas) {
  const std::vector<float> logits = {2.0f, 1.5f, -0.5f};
  const std::vector<std::int32_t> tokens = {2, 0};  // 2 is the prompt's, 0 was drawn
  const TextSoFar text{tokens, 1};
  const auto likeliest = [&](SamplingOptions o) {
    o.temperature = 0;
    return sample_token(logits, o, 0, text);
  };
  EXPECT_EQ(likeliest({}), 0);
  EXPECT_EQ(likeliest({.repetition_penalty = 1.2}), 0);  // 1.67
  EXPECT_EQ(likeliest({.repetition_penalty = 1.4}), 1);  // 1.43
  EXPECT_EQ(likeliest({.presence_penalty = 0.4}), 0);
  EXPECT_EQ(likeliest({.presence_penalty = 0.6}), 1);
  EXPECT_EQ(likeliest({.frequency_penalty = 0.6}), 1);
  EXPECT_EQ(likeliest({.presence_penalty = -4}), 0);  // the prompt's own are none
  // A negative logit is multiplied: below 1 that makes it likelier, beside -0.3.
  const std::vector<float> negative = {-0.3f, -2.0f, -0.5f};
  EXPECT_EQ(sample_token(negative, {.temperature = 0, .repetition_penalty = 0.5}, 0, {tokens, 2}),
            0);
  EXPECT_EQ(sample_token(negative, {.temperature = 0, .repetition_penalty = 2}, 0, {tokens, 2}), 0);
  EXPECT_EQ(sample_token(negative, {.temperature = 0, .repetition_penalty = 8}, 0, {tokens, 2}), 1);
}

TEST(Sampling, OptionsOutOfRangeAreRefused) {
  const double nan = std::nan("");
  for (const SamplingOptions& o : std::vector<SamplingOptions>{{.min_p = -0.1},
                                                               {.min_p = 1.1},
                                                               {.min_p = nan},
                                                               {.typical_p = 2},
                                                               {.typical_p = nan},
                                                               {.repetition_penalty = 0},
                                                               {.repetition_penalty = nan},
                                                               {.presence_penalty = 101},
                                                               {.frequency_penalty = nan}})
    EXPECT_EQ(refusal([&] { sample_token(kLogits, o, 0); }), "E0700");
}

std::string shown(const std::vector<std::string>& stop, const std::vector<std::string>& pieces) {
  StopStrings strings(stop);
  std::string text;
  for (const std::string& piece : pieces) text += strings.add(piece) + "|";
  return text + (strings.has_ended() ? "." : strings.rest());
}

TEST(StopStrings, NothingOfOneIsShown) {
  EXPECT_EQ(shown({"\n\n"}, {"a\n", "b\n", "\nc", "d"}), "a|\nb|||.");
  EXPECT_EQ(shown({"END"}, {"the E", "N", "X"}), "the ||ENX|");
  EXPECT_EQ(shown({"END"}, {"the E", "N"}), "the ||EN");
  EXPECT_EQ(shown({"aab"}, {"aa", "ab"}), "|a|.");
  EXPECT_EQ(shown({"bc", "b"}, {"ab"}), "a|.");
  EXPECT_EQ(shown({}, {"ab", "c"}), "ab|c|");
  EXPECT_EQ(refusal([] { StopStrings({"a", ""}); }), "E0700");
}

}  // namespace
}  // namespace aloft

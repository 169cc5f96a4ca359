// What a run says of itself: how fast it is now, and its loss in the units that people compare.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/pack.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "run/validation_loss.h"
#include "run/validation_loss_json.h"
#include "sources/tokens.h"
#include "tasks/loss_text.h"
#include "train/step_rate.h"

namespace aloft {
namespace {

// Sums of a few hundred doubles: what is left of a difference of 1e-9 and more would be a mistake.
TEST(StepRate, TheTimeLeftFollowsTheRecentSteps) {
  StepRate rate;
  EXPECT_LT(rate.left(10, 0), 0);
  double elapsed = 0;
  for (int i = 0; i < 100; ++i) rate.add(1.0), elapsed += 1.0;
  EXPECT_DOUBLE_EQ(rate.left(10, elapsed), 10);
  // The machine is free again: soon only the new pace counts.
  for (int i = 0; i < 60; ++i) rate.add(0.1), elapsed += 0.1;
  EXPECT_NEAR(rate.left(10, elapsed), 1, 1e-9);
  // A slow step among many moves nothing; what happens between steps is shared out over all.
  rate.add(50), elapsed += 50;
  EXPECT_NEAR(rate.left(161, elapsed + 16.1), 161 * 0.1 + 16.1, 1e-6);
}

TEST(ValidationLoss, IsPerplexityAndBitsPerByteToo) {
  const auto validation_loss = [](double loss, std::optional<double> bytes) {
    return ValidationLoss{loss, measures_of_text(loss, bytes)};
  };
  const ValidationLoss v = validation_loss(std::log(16.0), 2.0);
  EXPECT_NEAR(*v.measure("perplexity"), 16, 1e-9);
  EXPECT_NEAR(*v.measure("bits_per_byte"), 2, 1e-12);  // four bits a token of two bytes
  EXPECT_EQ(describe(v), "validation loss 2.7726 (perplexity 16, 2.0000 bits per byte)");
  EXPECT_EQ(describe(validation_loss(0, std::nullopt)), "validation loss 0.0000 (perplexity 1)");
  const nlohmann::json broken =
      json_of(validation_loss(std::numeric_limits<double>::quiet_NaN(), 3));
  EXPECT_TRUE(broken["val_loss"].is_null() && broken["val_bits_per_byte"].is_null());
  EXPECT_FALSE(json_of(validation_loss(1, std::nullopt)).contains("val_bits_per_byte"));
}

// The bytes of the validation text over its tokens, whether the shard was packed here or not.
TEST(ValidationLoss, CountsTheBytesOfTheValidationText) {
  const std::string text =
      "a\xc3\xa4"
      "bc";
  Dataset data{make_byte_tokenizer(), TokenSource::from_ids({1, 2}, 256), std::nullopt, {}};
  EXPECT_FALSE(bytes_a_validation_token(data));
  data.validation = TokenSource::from_ids(data.tokenizer->encode(text), 256);
  EXPECT_EQ(bytes_a_validation_token(data), 1.0);
  data.info.validation_bytes = 20;
  EXPECT_EQ(bytes_a_validation_token(data), 4.0);
  data.tokenizer = nullptr;
  EXPECT_FALSE(bytes_a_validation_token(data));
}

}  // namespace
}  // namespace aloft

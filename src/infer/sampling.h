// How a token is drawn from logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace aloft {

// Penalties first, then the temperature; then only those tokens stay that every filter leaves, in
// the order of the members, each on what those before it have left: as transformers has it.
struct SamplingOptions {
  static constexpr double kMostTemperature = 100, kMostPenalty = 100;
  double temperature = 1.0;  // to kMostTemperature; 0: always the likeliest token
  std::int64_t top_k = 0;    // only the k likeliest; 0: all
  double top_p = 1.0;        // only the likeliest that together have this probability; 0 to 1
  double min_p = 0;          // only those with this share of the likeliest's probability; 0 to 1
  // Only those whose surprise is nearest to what the distribution's is on average, which together
  // have this probability (Meister et al., Locally Typical Sampling, 2023); 0 to 1.
  double typical_p = 1.0;
  // Logits of tokens that the text has, prompt included, are divided by it where they are positive
  // and multiplied where not (Keskar et al., CTRL, 2019); above 0, to kMostPenalty; 1: none.
  double repetition_penalty = 1.0;
  // Taken from the logits of tokens that were drawn before: once, and for each time; within
  // +-kMostPenalty.
  double presence_penalty = 0, frequency_penalty = 0;
  std::uint64_t seed = 1;    // of the draws
  std::uint64_t stream = 0;  // which of several texts it is that have the seed
};

// What a text is so far: its prompt's tokens and, from `prompt` on, those that were drawn.
struct TextSoFar {
  std::span<const std::int32_t> tokens = {};
  std::size_t prompt = 0;
};

// UserError E0700 where an option is out of range; NaN is in none.
void check(const SamplingOptions& options);

// UserError E0812 where there is no logit, DivergedError E0813 where one is NaN or +inf or all are
// -inf.
void check_logits(std::span<const float> logits);

// Draws the `index`-th token of a sequence from its logits; a pure function. DivergedError E0813
// where a logit is NaN or +inf or all are -inf, UserError E0812 where there is none, E0700 where an
// option is out of range.
std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                          std::int64_t index, const TextSoFar& text = {});

}  // namespace aloft

// Text from a GPT-2 with a key/value cache: a program for one token and one for a stretch of the
// prompt, compiled once; each token that is drawn costs one run of the first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/programs.h"
#include "models/gpt2.h"

namespace aloft {

struct SamplingOptions {
  double temperature = 1.0;  // 0: always the likeliest token
  std::int64_t top_k = 0;    // only the k likeliest; 0: all
  double top_p = 1.0;        // only the likeliest that together have this probability
  std::uint64_t seed = 1;
};

// Draws the `index`-th token of a sequence from its logits; a pure function. DivergedError E0813
// where a logit is NaN or +inf.
std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                          std::int64_t index);

class Generator {
 public:
  // Compiles for sequences of up to the model's context. The model's parameters move into the
  // generator's arenas; they keep their values.
  explicit Generator(models::Gpt2& model, int threads = 0);

  // Starts a new sequence and feeds `tokens` (at least one; the last context - 1 of them count);
  // afterwards logits() are those of the next token.
  void start(std::span<const std::int32_t> tokens);
  // Feeds one more token. When the context is full, the older half of the sequence is dropped and
  // the rest fed again.
  void feed(std::int32_t token);
  // Of the next token; of the first `ids` tokens only, where a padded head has more rows than the
  // tokenizer has pieces.
  std::span<const float> logits(std::int64_t ids = INT64_MAX) const;

 private:
  void check(std::span<const std::int32_t> tokens) const;
  void run(int program, std::int32_t* input, std::span<const std::int32_t> tokens);

  models::Gpt2& model_;
  models::Gpt2Cache cache_;
  Programs programs_;
  std::int64_t stretch_ = 1;  // tokens that prefill takes at a time
  int decode_ = -1, prefill_ = -1;
  std::int32_t *token_ = nullptr, *prompt_ = nullptr;
  const float* logits_ = nullptr;
  std::vector<std::int32_t> sequence_;
};

}  // namespace aloft

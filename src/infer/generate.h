// Text from a language model with a key/value cache: a program for one token and one for a stretch
// of the prompt, compiled once; each token that is drawn costs one run of the first.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/programs.h"
#include "infer/sampling.h"
#include "models/model.h"

namespace aloft {

// Sequences that grow side by side, each in a row of its own: what is read of the weights for a
// token is read once for all of them.
class Generator {
 public:
  // Compiles for `rows` sequences of up to the model's context, or of so many tokens as will come
  // (`tokens`, prompts included), if those are fewer: keys and values of a long context take more
  // room than the model. The model's parameters move into the generator's arenas; they keep their
  // values. With advice for less memory, what does not fit
  // is refused before it is made: EnvironmentError E0401. (A training run has its weights at hand.)
  // UserError E0215 where the model decodes to other logits than [rows, n, vocab()].
  explicit Generator(models::CausalLm& model, int threads = 0, std::int64_t rows = 1,
                     std::string_view less_memory = "",
                     std::int64_t tokens = std::numeric_limits<std::int64_t>::max());

  // How many sequences there are.
  std::int64_t rows() const { return static_cast<std::int64_t>(sequences_.size()); }

  // Starts every row anew with `tokens` (at least one: UserError E0812; the last context - 1 of
  // them count); afterwards logits() are those of the next token. Here and below DataError E0522
  // for a token outside the model's vocabulary.
  void start(std::span<const std::int32_t> tokens);
  // Feeds one more token a row. When the context is full, the older part of every sequence is let
  // go and the newer half or so is fed again, so that a token costs about the same wherever it
  // stands: positions are learnt, and a cache that slid by one would hold none of them. UserError
  // E0812 before start(), or for another number of tokens.
  void feed(std::span<const std::int32_t> tokens);
  void feed(std::int32_t token) { feed({&token, 1}); }
  // Of a row's next token; of the first `ids` tokens only where a padded head has more rows than
  // the tokenizer has pieces. UserError E0812 before start(), or where there is no such row; E0700
  // where ids are below 1.
  HostRead<float> logits(std::int64_t ids = INT64_MAX, std::int64_t row = 0) const;

  // Of the programs "prefill" and "decode".
  const Plan& plan() const { return programs_.plan(); }
  // How often the context was full, and how many tokens went through the model a row, those that
  // were fed again included.
  std::int64_t times_full() const { return times_full_; }
  std::int64_t tokens_fed() const { return tokens_fed_; }

 private:
  void check(std::span<const std::int32_t> tokens) const;
  void need_start() const;
  void run(int program, const InputPort<std::int32_t>& input, std::size_t from, std::size_t count,
           std::size_t width);
  void feed_all();

  models::CausalLm& model_;
  models::DecodeCache cache_;
  Programs programs_;
  std::int64_t stretch_ = 1;  // tokens that prefill takes at a time
  int decode_ = -1, prefill_ = -1;
  InputPort<std::int32_t> token_, prompt_;
  OutputPort<float> logits_;
  std::vector<std::vector<std::int32_t>> sequences_;  // a row each, equally long
  std::int64_t times_full_ = 0, tokens_fed_ = 0;
};

// What draw_texts() draws.
struct DrawOptions {
  std::int64_t tokens = 100;       // at most so many a row; 0 or more
  std::int64_t ids = INT64_MAX;    // of Generator::logits()
  std::vector<std::int32_t> ends;  // tokens that end a text
  SamplingOptions sampling;        // row r draws with seed + r
  // Whether a row's text ends behind a token that was drawn, which stays in it; may be null.
  std::function<bool(std::int64_t row, std::int32_t token)> stops = {};
};

// A row's text.
struct DrawnText {
  std::vector<std::int32_t> tokens;  // without the one of DrawOptions::ends
  bool ended = false;                // by one of these, or as DrawOptions::stops said
};

// Goes on from `prompt` in every row, until each has its tokens or has ended. `drawn` hears of
// every token as it is drawn. UserError E0700, before anything is drawn, where an option is out of
// range; E0812 for an empty prompt.
std::vector<DrawnText> draw_texts(
    Generator& generator, std::span<const std::int32_t> prompt, const DrawOptions& options,
    const std::function<void(std::int64_t row, std::int32_t token)>& drawn = {});

}  // namespace aloft

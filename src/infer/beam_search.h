// Beam search: the text that is likeliest as a whole, as far as a few that grow side by side tell.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "infer/generate.h"

namespace aloft {

// What search_beams() looks for.
struct BeamOptions {
  std::int64_t tokens = 100;       // at most so many; 1 or more
  std::int64_t ids = INT64_MAX;    // of Generator::logits()
  std::vector<std::int32_t> ends;  // tokens that end a text
  static constexpr double kMostPenalty = 5;
  double length_penalty = 1;  // a text's score is its log-probability / tokens^this
  // Hears of every step: how many tokens the beams have. May throw; may be null.
  std::function<void(std::int64_t length)> on_step = {};
};

// The best text.
struct BeamText {
  std::vector<std::int32_t> tokens;  // without the one that ends it
  bool ended = false;                // by one of BeamOptions::ends
  double score = 0;
};

// Goes on from `prompt` with as many beams as the generator has rows, two or more. What it finds is
// what transformers' generate(num_beams=rows, do_sample=False, early_stopping=False) gives: of each
// step the likeliest continuations of all beams go on, those that end are kept by their score, and
// it ends where no beam that goes on could be better than the worst of those that are kept, were it
// to end there. UserError E0812 for an empty prompt or one row, E0700 where an option is out of
// range, or the prompt and the tokens are more than the generator has room for; DivergedError E0813
// where a logit is no finite number; Interrupted (interrupt.h) where a signal asks for the end.
BeamText search_beams(Generator& generator, std::span<const std::int32_t> prompt,
                      const BeamOptions& options);

// The errors of search_beams() that are known before it begins, for whoever has many prompts.
void check_beams(const Generator& generator, std::span<const std::int32_t> prompt,
                 const BeamOptions& options);

}  // namespace aloft

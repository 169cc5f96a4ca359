// Texts that are drawn in the rows of a generator, side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "infer/generate.h"
#include "infer/sampling.h"

namespace aloft {

// A text that is drawn, below.
struct DrawnText;

// What draw_texts() draws.
struct DrawOptions {
  std::int64_t tokens = 100;       // at most so many a row; 0 or more
  std::int64_t ids = INT64_MAX;    // of Generator::logits()
  std::vector<std::int32_t> ends;  // tokens that end a text
  SamplingOptions sampling;        // from one prompt: row r draws with seed + r
  // Whether a text ends behind a token that was drawn, which stays in it; may be null.
  std::function<bool(std::int64_t text, std::int32_t token)> stops = {};
  // Hears of every text when it is done, in whatever order they are; may be null.
  std::function<void(std::int64_t text, const DrawnText&)> done = {};
};

// Why a text has ended.
enum class TextEnd {
  Tokens,  // it has as many tokens as were asked for
  End,     // the model has ended it: one of DrawOptions::ends
  Stop,    // as DrawOptions::stops said
};

// A text that was drawn.
struct DrawnText {
  std::vector<std::int32_t> tokens;  // without the one of DrawOptions::ends
  TextEnd end = TextEnd::Tokens;     // why it has ended
  double seconds = 0;  // from the beginning of its prompt, and of those that began with it, on
  // Whether it has ended by itself.
  bool ended() const { return end != TextEnd::Tokens; }
};

// Hears of every token as it is drawn; texts are known by their numbers, of rows where all go on
// from one prompt.
using Drawn = std::function<void(std::int64_t text, std::int32_t token)>;

// Goes on from `prompt` in every row, until each has its tokens or has ended. UserError E0700,
// before anything is drawn, where an option is out of range; E0812 for an empty prompt.
std::vector<DrawnText> draw_texts(Generator& generator, std::span<const std::int32_t> prompt,
                                  const DrawOptions& options, const Drawn& drawn = {});

// A text of its own.
struct TextStart {
  std::vector<std::int32_t> prompt;    // which it goes on from
  std::uint64_t seed = 1, stream = 0;  // of SamplingOptions
  std::int64_t tokens = INT64_MAX;     // at most so many, where DrawOptions::tokens is more
};
// The same of texts of their own, in a generator whose rows have lengths of their own (or that has
// one): what is drawn for a text is what would be drawn for it alone. There may be more than rows
// where these are RowLengths::Renewed: a row whose text has ended takes the next.
std::vector<DrawnText> draw_texts(Generator& generator, std::span<const TextStart> texts,
                                  const DrawOptions& options, const Drawn& drawn = {});
// The same from where the generator stands: behind start_again() with `prompt`.
DrawnText draw_on(Generator& generator, std::span<const std::int32_t> prompt,
                  const DrawOptions& options, const Drawn& drawn = {});

}  // namespace aloft

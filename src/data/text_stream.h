// The text of ids that come one by one: what is whole of it, as soon as it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace aloft {

// The parts that push() and finish() give make Tokenizer::decode of all ids together. A character
// whose bytes several tokens hold comes with the last of them.
class TextStream {
 public:
  // The tokenizer outlives this.
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // The text that this id completes; "" while it may still change. UserError E0502.
  std::string push(std::int32_t id);
  // What is left, be it a part of a character; the next id begins a new text.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  // Ids whose text decides how the next ones are written: those of the last part that was given,
  // and those behind it.
  std::vector<std::int32_t> ids_;
  std::size_t told_ids_ = 0;  // of ids_, those whose text has been given
  std::string told_;          // which text that is
};

}  // namespace aloft

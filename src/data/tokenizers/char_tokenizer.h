// The `char` kind: one id for each distinct character (UTF-8 code point) of a text, in code point
// order. 256 more ids, one a byte, are reserved only where they are needed: where the text itself
// has bytes that are not UTF-8, or where the caller wants every input to be accepted.
#pragma once

#include <memory>
#include <vector>

#include "data/tokenizer.h"

namespace aloft {

enum class ByteFallback { WhereNeeded, Always };

// Collects the characters of a text that arrives in pieces.
class CharAlphabet {
 public:
  CharAlphabet();
  // Pieces must not be cut inside a character (utf8::safe_cut).
  void add(std::string_view text);
  // DataError E0504 where no character was seen.
  std::unique_ptr<Tokenizer> build(ByteFallback fallback = ByteFallback::WhereNeeded) const;

 private:
  std::vector<bool> seen_;
  bool broken_bytes_ = false;
};

// `alphabet`: ascending code points. DataError E0503 where it is not.
std::unique_ptr<Tokenizer> make_char_tokenizer(std::vector<char32_t> alphabet, bool byte_fallback);

}  // namespace aloft

// UTF-8, strictly (no overlong forms, no surrogates). Bytes that are not part of a valid sequence
// come out one by one, so that any byte string can be walked and put together again.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace aloft::utf8 {

struct Step {
  char32_t code = 0;       // the code point, or the raw byte where !valid
  std::size_t length = 1;  // bytes taken from the text
  bool valid = false;
};

// Reads at `position` (< text.size()).
Step step(std::string_view text, std::size_t position);

void append(std::string& out, char32_t code);

// The largest cut <= text.size() that does not fall inside a sequence which later bytes could
// complete: at most 3 bytes are held back.
std::size_t safe_cut(std::string_view text);

}  // namespace aloft::utf8

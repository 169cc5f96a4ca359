// SentencePiece's table of replacements (the normalizer `Precompiled`): sequences of bytes, found
// in a double array, and what stands for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/parts/json_place.h"

namespace aloft::parts {

class Charsmap {
 public:
  // Base64 of: the array's bytes (uint32), the array, the replacements, each ended by a zero.
  // E0519 where it is not that.
  explicit Charsmap(const JsonPlace& place);

  // Appends a text with its replacements, as Hugging Face's library makes them: what a reader sees
  // as one character at once where it is shorter than 6 bytes, else code point by code point.
  void append(std::string& out, std::string_view text) const;

 private:
  // What stands for a text that begins with an entry, the shortest of them; nothing where none
  // does.
  std::optional<std::string_view> replacement(std::string_view text) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace aloft::parts

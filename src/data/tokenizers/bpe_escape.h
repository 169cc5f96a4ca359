// Bytes as characters that SentencePiece leaves alone (see bpe_tokenizer.h), and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace aloft {

// The character of a byte, UTF-8. Distinct for distinct bytes.
std::string_view escape_of(unsigned char byte);

// The bytes of a piece of escaped text; nullopt where it holds anything else. SentencePiece's mark
// for a space, U+2581, is a space.
std::optional<std::string> unescape(std::string_view piece);

}  // namespace aloft

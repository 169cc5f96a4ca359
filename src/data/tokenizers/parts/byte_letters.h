// GPT-2's writing of bytes, in which byte-level vocabularies are published: each byte is one
// visible character, printable Latin-1 as itself, the 68 others as U+0100 onwards.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace aloft::parts {

const std::array<char32_t, 256>& letters_of_bytes();

// Appends the letters of bytes, UTF-8.
void append_letters(std::string& out, std::string_view bytes);

// The bytes that letters stand for; nothing where a character is none of the 256.
std::optional<std::string> bytes_of_letters(std::string_view letters);

}  // namespace aloft::parts

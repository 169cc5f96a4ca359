// How GPT-2 cuts text into words before it merges bytes: by hand what its regular expression says,
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// with Unicode's letters, numbers and white space. Bytes that are not UTF-8, which the original
// cannot meet, count as neither. Compared code point by code point with Hugging Face's tokenizers.
#pragma once

#include <cstddef>
#include <string_view>

namespace aloft::gpt2 {

enum class CharClass { Letter, Number, Space, Other };
CharClass class_of(char32_t code);

// Bytes of the word that begins at `position` (< text.size()); at least 1.
std::size_t word_length(std::string_view text, std::size_t position);

// A place where a cut changes no word whatever follows: before white space behind anything else.
std::size_t safe_cut(std::string_view text);

}  // namespace aloft::gpt2

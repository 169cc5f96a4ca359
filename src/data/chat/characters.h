// Text by characters (code points of UTF-8), as Python's strings are: what is white space, where
// the n-th one lies.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace aloft::chat {

std::vector<std::string_view> characters(std::string_view text);
std::size_t count_characters(std::string_view text);
// The byte at which the n-th one begins; text.size() from the end on.
std::size_t place_of_character(std::string_view text, std::size_t n);

// What str.isspace() is true of.
bool is_space(char32_t code);
// Python's lstrip() and rstrip() without an argument.
std::string_view without_space_before(std::string_view text);
std::string_view without_space_behind(std::string_view text);
// Whether all of it is ASCII.
bool is_ascii(std::string_view text);

}  // namespace aloft::chat

#include "data/chat/characters.h"

#include <algorithm>

#include "data/tokenizers/utf8.h"

namespace aloft::chat {
namespace {

// Where the last character begins.
std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8::step(text, at).length;
    out.push_back(text.substr(at, length));
    at += length;
  }
  return out;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::size_t place_of_character(std::string_view text, std::size_t n) {
  std::size_t at = 0;
  for (; n > 0 && at < text.size(); --n) at += utf8::step(text, at).length;
  return at;
}

bool is_space(char32_t code) {
  if (code < 0x80) return (code >= 9 && code <= 13) || (code >= 0x1C && code <= 0x20);
  if (code >= 0x2000 && code <= 0x200A) return true;
  constexpr char32_t kOthers[] = {0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  return std::find(std::begin(kOthers), std::end(kOthers), code) != std::end(kOthers);
}

std::string_view without_space_before(std::string_view text) {
  while (!text.empty()) {
    const utf8::Step first = utf8::step(text, 0);
    if (!first.valid || !is_space(first.code)) break;
    text.remove_prefix(first.length);
  }
  return text;
}

std::string_view without_space_behind(std::string_view text) {
  while (!text.empty()) {
    const std::size_t at = last_character(text);
    const utf8::Step last = utf8::step(text, at);
    if (!last.valid || !is_space(last.code)) break;
    text = text.substr(0, at);
  }
  return text;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace aloft::chat

#include "data/tokenizers/gpt2_words.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "data/tokenizers/utf8.h"

namespace aloft::gpt2 {
namespace {

struct CodeRange {
  char32_t first, last;
};

#include "data/tokenizers/unicode_classes.inc"

// Unicode's White_Space property.
constexpr CodeRange kSpaces[] = {
    {0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

template <std::size_t N>
bool within(const CodeRange (&ranges)[N], char32_t code) {
  const auto after = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                      [](char32_t c, const CodeRange& r) { return c < r.first; });
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}

CharClass search(char32_t code) {
  if (within(kLetters, code)) return CharClass::Letter;
  if (within(kNumbers, code)) return CharClass::Number;
  if (within(kSpaces, code)) return CharClass::Space;
  return CharClass::Other;
}

struct Char {
  CharClass kind;
  std::size_t length;
};

Char char_at(std::string_view text, std::size_t position) {
  const utf8::Step step = utf8::step(text, position);
  return {step.valid ? class_of(step.code) : CharClass::Other, step.length};
}

// The end of the run of characters of `kind` that begins at `position`.
std::size_t run_end(std::string_view text, std::size_t position, CharClass kind) {
  while (position < text.size()) {
    const Char c = char_at(text, position);
    if (c.kind != kind) break;
    position += c.length;
  }
  return position;
}

std::size_t contraction(std::string_view text) {
  for (std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  return 0;
}

}  // namespace

CharClass class_of(char32_t code) {
  static const auto ascii = [] {
    std::array<CharClass, 128> table;
    for (char32_t c = 0; c < 128; ++c) table[c] = search(c);
    return table;
  }();
  return code < 128 ? ascii[code] : search(code);
}

std::size_t word_length(std::string_view text, std::size_t position) {
  if (text[position] == '\'')
    if (const std::size_t length = contraction(text.substr(position))) return length;
  const Char first = char_at(text, position);
  if (first.kind != CharClass::Space) return run_end(text, position, first.kind) - position;
  if (text[position] == ' ' && position + 1 < text.size()) {
    const Char second = char_at(text, position + 1);
    if (second.kind != CharClass::Space) return run_end(text, position + 1, second.kind) - position;
  }
  // White space: all of it at the text's end, otherwise all but its last character, which belongs
  // to the next word; a single one stands alone.
  std::size_t end = position, last = position;
  while (end < text.size()) {
    const Char c = char_at(text, end);
    if (c.kind != CharClass::Space) break;
    last = end;
    end += c.length;
  }
  return (end < text.size() && last > position ? last : end) - position;
}

std::size_t safe_cut(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 1;) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x80 || class_of(byte) != CharClass::Space) continue;
    // The character that ends before `at`: a valid sequence of up to four bytes, or a lone byte.
    CharClass before = CharClass::Other;
    for (std::size_t back = 1; back <= std::min<std::size_t>(4, at); ++back) {
      const utf8::Step step = utf8::step(text, at - back);
      if (!step.valid || step.length != back) continue;
      before = class_of(step.code);
      break;
    }
    if (before != CharClass::Space) return at;
  }
  return 0;
}

}  // namespace aloft::gpt2

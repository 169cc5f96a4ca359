#include "data/tokenizers/utf8.h"

#include <algorithm>

namespace aloft::utf8 {
namespace {

// Length of the sequence that `lead` announces, 0 where it cannot lead one.
std::size_t announced(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

Step step(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = announced(lead);
  if (length == 1) return {lead, 1, true};
  const Step raw{lead, 1, false};
  if (length == 0 || length > text.size() - position) return raw;
  char32_t code = lead & (0xFF >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(byte(i))) return raw;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < smallest[length] || code > 0x10FFFF || surrogate) return raw;
  return {code, length, true};
}

void append(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) {
    out += static_cast<char>(static_cast<unsigned char>(byte));
  };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

std::size_t safe_cut(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const unsigned char byte = static_cast<unsigned char>(text[text.size() - back]);
    if (continues(byte)) continue;
    return announced(byte) > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace aloft::utf8

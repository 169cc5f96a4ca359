#include "data/tokenizers/parts/byte_letters.h"

#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

constexpr char32_t kFirstOther = 0x100;
constexpr int kOthers = 68;

}  // namespace

const std::array<char32_t, 256>& letters_of_bytes() {
  static const auto table = [] {
    std::array<char32_t, 256> made{};
    char32_t next = kFirstOther;
    for (char32_t b = 0; b < 256; ++b) {
      const bool is_printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
      made[b] = is_printable ? b : next++;
    }
    return made;
  }();
  return table;
}

void append_letters(std::string& out, std::string_view bytes) {
  const auto& letters = letters_of_bytes();
  for (char c : bytes) {
    const char32_t letter = letters[static_cast<unsigned char>(c)];
    if (letter < 0x80) {
      out += static_cast<char>(letter);
    } else {
      out += static_cast<char>(0xC0 | letter >> 6);
      out += static_cast<char>(0x80 | (letter & 0x3F));
    }
  }
}

std::optional<std::string> bytes_of_letters(std::string_view letters) {
  static const auto bytes_of = [] {
    std::array<int, kFirstOther + kOthers> made;
    made.fill(-1);
    for (int b = 0; b < 256; ++b) made[letters_of_bytes()[static_cast<std::size_t>(b)]] = b;
    return made;
  }();
  std::string bytes;
  for (std::size_t at = 0; at < letters.size();) {
    const utf8::Step step = utf8::step(letters, at);
    if (!step.valid || step.code >= bytes_of.size() || bytes_of[step.code] < 0) return std::nullopt;
    bytes += static_cast<char>(bytes_of[step.code]);
    at += step.length;
  }
  return bytes;
}

}  // namespace aloft::parts

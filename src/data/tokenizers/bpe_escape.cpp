#include "data/tokenizers/bpe_escape.h"

#include <array>

#include "data/tokenizers/utf8.h"

namespace aloft {
namespace {

constexpr char32_t kControlPictures = 0x2400;  // common script: free to join punctuation
constexpr char32_t kPictureOfDelete = 0x2421;
constexpr char32_t kLatinExtended = 0x100;  // letters: characters beyond ASCII are mostly letters
constexpr char32_t kSpaceMark = 0x2581;

char32_t code_of(int byte) {
  if (byte < 0x20) return kControlPictures + static_cast<char32_t>(byte);
  if (byte < 0x7F) return static_cast<char32_t>(byte);
  if (byte == 0x7F) return kPictureOfDelete;
  return kLatinExtended + static_cast<char32_t>(byte);
}

std::optional<unsigned char> byte_of(char32_t code) {
  if (code == kSpaceMark) return ' ';
  if (code == kPictureOfDelete) return 0x7F;
  if (code >= 0x20 && code < 0x7F) return static_cast<unsigned char>(code);
  if (code >= kControlPictures && code < kControlPictures + 0x20)
    return static_cast<unsigned char>(code - kControlPictures);
  if (code >= kLatinExtended + 0x80 && code < kLatinExtended + 0x100)
    return static_cast<unsigned char>(code - kLatinExtended);
  return std::nullopt;
}

}  // namespace

std::string_view escape_of(unsigned char byte) {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> made;
    for (int b = 0; b < 256; ++b) utf8::append(made[static_cast<std::size_t>(b)], code_of(b));
    return made;
  }();
  return table[byte];
}

std::optional<std::string> unescape(std::string_view piece) {
  std::string bytes;
  for (std::size_t at = 0; at < piece.size();) {
    const utf8::Step step = utf8::step(piece, at);
    const auto byte = step.valid ? byte_of(step.code) : std::nullopt;
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
    at += step.length;
  }
  return bytes;
}

}  // namespace aloft

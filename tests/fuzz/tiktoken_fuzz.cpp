// A .tiktoken file from any bytes, behind the 256 that every one has: refused, or a tokenizer that
// gives a text back.
#include <cstdint>
#include <string>

#include "base/error.h"
#include "data/tokenizers/tiktoken_tokenizer.h"

namespace {

std::string all_bytes() {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string file;
  for (std::uint32_t b = 0; b < 256; ++b) {
    file += kLetters[b >> 2];
    file += kLetters[b << 4 & 63];
    file += "== " + std::to_string(b) + "\n";
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  static const std::string bytes = all_bytes();
  constexpr std::string_view kText = "Plain text, 1234\t and\n\nwhat \xC3\xA9 is: <|endoftext|>";
  try {
    const auto tokenizer = make_tiktoken_tokenizer(
        bytes + std::string(reinterpret_cast<const char*>(data), size), "cl100k_base", "fuzz");
    ensure(tokenizer->decode(tokenizer->encode(kText)) == kText, "a text comes back");
  } catch (const DataError&) {
  }
  return 0;
}

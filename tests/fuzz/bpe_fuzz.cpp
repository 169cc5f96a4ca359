// A SentencePiece model from any bytes, made by anybody or by this program: refused, or a tokenizer
// that gives a text back as it was.
#include <cstdint>

#include "base/error.h"
#include "data/tokenizers/bpe_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  constexpr std::string_view kText = "Plain text, \t and\nwhat is not: \xff\xfe \xe2\x96\x81";
  for (const bool escaped : {false, true}) {
    try {
      const auto tokenizer = load_bpe({reinterpret_cast<const char*>(data), size}, escaped, "fuzz");
      const auto ids = tokenizer->encode(kText);
      for (const std::int32_t id : ids)
        ensure(id >= 0 && id < tokenizer->vocab_size(), "an id is of the vocabulary");
      static_cast<void>(tokenizer->decode(ids));
    } catch (const DataError&) {
    }
  }
  return 0;
}

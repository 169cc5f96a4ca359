// A SentencePiece model from any bytes, made by anybody or by this program, read by the kind `bpe`
// and by the kind `sentencepiece`: refused, or a tokenizer whose ids are of its vocabulary and have
// a text.
#include <cstdint>
#include <string>

#include "base/error.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/sentencepiece_tokenizer.h"

namespace {

void use(const aloft::Tokenizer& tokenizer) {
  constexpr std::string_view kText = "Plain text, \t and\nwhat is not: \xff\xfe \xe2\x96\x81";
  const auto ids = tokenizer.encode(kText);
  for (const std::int32_t id : ids)
    aloft::ensure(id >= 0 && id < tokenizer.vocab_size(), "an id is of the vocabulary");
  static_cast<void>(tokenizer.decode(ids));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  const std::string model(reinterpret_cast<const char*>(data), size);
  for (const bool escaped : {false, true}) {
    try {
      use(*load_bpe(model, escaped, "fuzz"));
    } catch (const DataError&) {
    }
  }
  try {
    use(*make_sentencepiece_tokenizer(model, "fuzz"));
  } catch (const DataError&) {
  }
  return 0;
}

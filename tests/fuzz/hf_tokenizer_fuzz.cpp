// A tokenizer.json from any bytes: refused by name, or a tokenizer whose ids are of its vocabulary
// and have a text.
//
// The part up to the first zero byte is the JSON; then comes a text.
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "data/text_stream.h"
#include "data/tokenizers/hf_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string json(text.substr(0, text.find('\0')));
  text.remove_prefix(std::min(text.size(), json.size() + 1));
  try {
    const auto tokenizer = make_hf_tokenizer(json, "fuzz");
    const auto ids = tokenizer->framed(tokenizer->encode(text));
    TextStream stream(*tokenizer);
    for (const std::int32_t id : ids) {
      ensure(id >= 0 && id < tokenizer->vocab_size(), "an id is of the vocabulary");
      static_cast<void>(tokenizer->bytes_of(id));
      static_cast<void>(stream.push(id));
    }
    static_cast<void>(stream.finish());
    const std::size_t cut = tokenizer->safe_cut(text);
    ensure(cut <= text.size(), "a cut lies in the text");
    auto in_two = tokenizer->encode(text.substr(0, cut));
    tokenizer->encode_to(text.substr(cut), in_two);
    if (cut > 0) ensure(in_two == tokenizer->encode(text), "a cut changes no id");
  } catch (const DataError&) {
  }
  return 0;
}

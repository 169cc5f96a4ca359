// Tokenizers from any bytes: aloft_tokenizer.json, and GPT-2's vocab.json and merges.txt. What is
// accepted gives every text back as it was.
//
// The part up to the first zero byte is the JSON, up to the second the merges, then comes a text.
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "data/tokenizer.h"
#include "data/tokenizers/gpt2_tokenizer.h"
#include "temporary_folder.h"

namespace {

using namespace aloft;

std::string_view next_part(std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  ensure(tokenizer.vocab_size() > 0, "a tokenizer has tokens");
  try {
    const auto ids = tokenizer.encode(text);
    for (const std::int32_t id : ids)
      ensure(id >= 0 && id < tokenizer.vocab_size(), "an id is of the vocabulary");
    ensure(tokenizer.decode(ids) == text, "a text comes back");
    ensure(tokenizer.safe_cut(text) <= text.size(), "a cut lies in the text");
  } catch (const DataError& e) {
    ensure(e.code() == "E0501", "only a character can be unknown");
  }
  if (const auto end = tokenizer.end_of_text()) tokenizer.bytes_of(*end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view json = next_part(rest), merges = next_part(rest);
  TemporaryFolder::put(folder / std::string(kTokenizerFile), json);
  try {
    use(*load_tokenizer(folder.path()), rest);
  } catch (const DataError&) {
  }
  try {
    use(*make_gpt2_tokenizer(json, merges, "fuzz"), rest);
  } catch (const DataError&) {
  }
  return 0;
}

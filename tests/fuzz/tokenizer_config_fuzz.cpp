// A tokenizer_config.json of any bytes, beside a special_tokens_map.json of any: refused, or
// special tokens, a chat template, and a token that ends a text.
//
// The part up to the first zero byte is the one, the rest the other.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/chat/load_chat_template.h"
#include "data/tokenizer_json.h"
#include "temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  static const TemporaryFolder folder;
  static const bool once = [] {
    const nlohmann::json file = tokenizer_json(word_level({"<s>", "</s>", "a", "b"}));
    TemporaryFolder::put(folder / "tokenizer.json", file.dump());
    return true;
  }();
  static_cast<void>(once);
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(all.find('\0'), all.size());
  TemporaryFolder::put(folder / "tokenizer_config.json", all.substr(0, end));
  TemporaryFolder::put(folder / "special_tokens_map.json",
                       all.substr(std::min(end + 1, all.size())));
  try {
    const auto tokens = special_tokens_in(folder.path());
    for (const auto& [name, token] : tokens.items())
      ensure(token.is_string(), "a special token is a text");
    const bool has_one = has_chat_template(folder.path());
    const LoadedChatTemplate loaded = load_chat_template(folder.path());
    ensure(has_one, "a template that is loaded is there");
    ensure(loaded.variables == tokens, "it is given the special tokens");
  } catch (const DataError& e) {
    ensure(e.code().starts_with("E054"), "what is refused is a template, or the file of one");
  }
  try {
    const auto tokenizer = load_tokenizer(folder.path());
    if (const auto id = tokenizer->end_of_text())
      ensure(*id >= 0 && *id < tokenizer->vocab_size(), "a text ends with a token");
  } catch (const DataError&) {
  }
  return 0;
}

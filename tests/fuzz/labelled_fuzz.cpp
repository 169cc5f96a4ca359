// Lines of texts with labels, of any bytes: texts that fit an example, with a label each, or a
// refusal that names a line. The same bytes give the same.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/labelled_texts.h"
#include "data/tokenizer_json.h"
#include "temporary_folder.h"

namespace {

using namespace aloft;

constexpr std::int64_t kLength = 9;

// One that says what stands around one text and two.
const Tokenizer& words() {
  static const auto made = [] {
    nlohmann::json file = tokenizer_json(word_level({"<s>", "</s>", "a", "b", "c", "d"}));
    file["pre_tokenizer"] = {{"type", "Whitespace"}};
    file["post_processor"] = {
        {"type", "BertProcessing"}, {"cls", {"<s>", 1}}, {"sep", {"</s>", 2}}};
    return made_of(file);
  }();
  return *made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  const Path path = folder / "a.jsonl";
  TemporaryFolder::put(path, std::string_view(reinterpret_cast<const char*>(data), size));
  try {
    const LabelledTexts t = read_labelled_texts(path, words(), kLength);
    ensure(t.examples() > 0 && t.starts.size() == t.examples() + 1, "there are texts");
    ensure(t.types.size() == t.tokens.size() && t.starts.back() == t.tokens.size(),
           "each token has a kind and is of a text");
    for (std::size_t i = 0; i < t.examples(); ++i) {
      ensure(t.starts[i + 1] > t.starts[i] &&
                 t.starts[i + 1] - t.starts[i] <= static_cast<std::uint64_t>(kLength),
             "a text fits");
      ensure(t.labels[i] >= 0, "labels begin at 0");
    }
    for (const std::int32_t id : t.tokens)
      ensure(id >= 0 && id < words().vocab_size(), "an id is of the vocabulary");
    ensure(read_labelled_texts(path, words(), kLength).tokens == t.tokens,
           "the same is read again");
  } catch (const DataError& e) {
    ensure(e.code() == "E0515", "what is refused is a line");
  }
  return 0;
}

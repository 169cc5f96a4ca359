// JSON lines of any bytes: sequences of tokens that fit an example, each with something to learn,
// or a refusal that names a line. The same bytes give the same.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/jsonl_set.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "temporary_folder.h"

namespace {

using namespace aloft;

constexpr std::int64_t kLength = 12;

const LoadedChatTemplate& form() {
  static const LoadedChatTemplate loaded{
      ChatTemplate("{% for m in messages %}{{ '<' + m['role'] + '>' }}{{ m['content'] }}\n"
                   "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
                   "fuzz"),
      nlohmann::ordered_json::object()};
  return loaded;
}

JsonlSet read(const std::vector<CorpusFile>& files, double validation) {
  static const auto tokenizer = make_byte_tokenizer();
  std::optional<JsonlEncoder> encoder;
  return read_jsonl(files,
                    [&](JsonlKind kind) -> JsonlEncoder& {
                      return encoder.emplace(*tokenizer,
                                             kind == JsonlKind::Messages ? &form() : nullptr);
                    },
                    {.length = kLength, .validation = validation});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  const Path path = folder / "a.jsonl";
  TemporaryFolder::put(path, std::string_view(reinterpret_cast<const char*>(data), size));
  const std::vector<CorpusFile> files{{path, "a.jsonl", size, 0}};
  for (const double share : {0.0, 0.3}) {
    try {
      const JsonlSet set = read(files, share), again = read(files, share);
      ensure(!set.train->empty(), "there is something to train on");
      ensure(set.train->size() + set.validation->size() == set.sequences->size(),
             "each sequence is of one part");
      ensure(set.lines.size() == set.sequences->size(), "each has a line");
      ensure(set.sequences->hash_of(*set.train) == again.sequences->hash_of(*again.train),
             "the same is read again");
      for (std::size_t i = 0; i < set.sequences->size(); ++i)
        ensure(set.sequences->targets(i) > 0 && set.sequences->inputs(i) <= kLength,
               "a sequence fits, and something is learnt of it");
    } catch (const UserError& e) {
      ensure(e.code() == "E0512" && share > 0, "few lines have no two parts");
    } catch (const DataError& e) {
      ensure(e.code() == "E0511" || e.code() == "E0534" || e.code().starts_with("E054"),
             "what is refused is a line");
    }
  }
  return 0;
}

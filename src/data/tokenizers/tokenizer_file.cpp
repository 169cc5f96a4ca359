// load_tokenizer: which kind lies in a folder, and building it from its files.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "data/tokenizer.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/gpt2_tokenizer.h"

namespace aloft {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kModelLimit = std::uint64_t{256} << 20;

[[noreturn]] void damaged(const Path& path, const std::string& saw, const std::string& need) {
  throw DataError("E0503", "not a usable tokenizer")
      .at(path.string())
      .saw(saw)
      .need(need)
      .advice("build it again, or copy it again whole");
}

// A flipped bit may leave a tokenizer that works, with other words. Files of before there was a
// fingerprint are taken as they are.
std::unique_ptr<Tokenizer> as_saved(std::unique_ptr<Tokenizer> made, const Path& path,
                                    const Json& json) {
  const auto saved = json.find("fingerprint");
  if (saved != json.end() && *saved != hex16(made->fingerprint()))
    damaged(path, "a tokenizer of fingerprint " + hex16(made->fingerprint()),
            "the one that was saved, " + saved->dump());
  return made;
}

std::unique_ptr<Tokenizer> load_char(const Path& path, const Json& json) {
  const auto points = json.find("code_points");
  const auto fallback = json.find("byte_fallback");
  if (points == json.end() || !points->is_array() || fallback == json.end() ||
      !fallback->is_boolean())
    damaged(path, "fields missing", "an array code_points and a flag byte_fallback");
  std::vector<char32_t> alphabet;
  for (const Json& point : *points) {
    if (!point.is_number_unsigned() || point.get<std::uint64_t>() > 0x10FFFF)
      damaged(path, "the code point " + in_quotes(point.dump()), "numbers up to 0x10FFFF");
    alphabet.push_back(static_cast<char32_t>(point.get<std::uint64_t>()));
  }
  return as_saved(make_char_tokenizer(std::move(alphabet), fallback->get<bool>()), path, json);
}

// The model lies beside; its name is fixed, so that a file cannot point elsewhere.
std::unique_ptr<Tokenizer> load_saved_bpe(const Path& path, const Json& json) {
  const auto escaped = json.find("escaped");
  if (escaped == json.end() || !escaped->is_boolean())
    damaged(path, "fields missing", "a flag escaped");
  const Path model = path.parent_path() / "tokenizer.model";
  return as_saved(load_bpe(read_file(model, kModelLimit), escaped->get<bool>(), model.string()),
                  path, json);
}

std::unique_ptr<Tokenizer> load_gpt2(const Path& folder) {
  return make_gpt2_tokenizer(read_file(folder / "vocab.json", kModelLimit),
                             read_file(folder / "merges.txt", kModelLimit), folder.string());
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const Path& path) {
  if (path.extension() == ".model" && is_file(path))
    return load_bpe(read_file(path, kModelLimit), false, path.string());
  const Path file = path / kTokenizerFile;
  if (!path_exists(file)) {
    if (path_exists(path / "vocab.json") && path_exists(path / "merges.txt"))
      return load_gpt2(path);
    throw DataError("E0503", "no tokenizer there")
        .at(path.string())
        .need("a folder with " + std::string(kTokenizerFile) +
              " or with vocab.json and merges.txt, or a SentencePiece .model file");
  }
  const Json json = parse_json(read_file(file, std::uint64_t{64} << 20));
  if (!json.is_object()) damaged(file, "text that is not a JSON object", "what `aloft` wrote");
  if (json.value("format", Json()) != "aloft-tokenizer" || json.value("version", Json()) != 1)
    damaged(file, "another format or version", "format aloft-tokenizer, version 1");
  const Json kind = json.value("kind", Json());
  if (kind == "byte") return make_byte_tokenizer();
  if (kind == "char") return load_char(file, json);
  if (kind == "bpe") return load_saved_bpe(file, json);
  if (kind == "gpt2") return as_saved(load_gpt2(path), file, json);
  damaged(file, "kind " + in_quotes(kind.dump()), "byte, char, bpe or gpt2");
}

}  // namespace aloft

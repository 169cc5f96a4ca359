// load_tokenizer: which kind lies in a folder, and building it from its files.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "data/tokenizer.h"
#include "data/tokenizers/tokenizer_kind.h"

namespace aloft {
namespace {

using Json = nlohmann::json;

// The kind of what others have published there; null where there is none.
const TokenizerKind* published_at(const Path& path) {
  for (const TokenizerKind& kind : tokenizer_kinds())
    if (kind.published && kind.published->lies_at(path)) return &kind;
  return nullptr;
}

// A flipped bit may leave a tokenizer that works, with other words. Files of before there was a
// fingerprint are taken as they are.
std::unique_ptr<Tokenizer> as_saved(std::unique_ptr<Tokenizer> made, const Path& path,
                                    const Json& json) {
  const auto saved = json.find("fingerprint");
  if (saved != json.end() && *saved != hex16(made->fingerprint()))
    refuse_tokenizer(path, "a tokenizer of fingerprint " + hex16(made->fingerprint()),
                     "the one that was saved, " + saved->dump());
  return made;
}

// The content of a file that save() wrote.
Json read_saved(const Path& file) {
  Json json = parse_json(read_file(file, std::uint64_t{64} << 20));
  if (!json.is_object())
    refuse_tokenizer(file, "text that is not a JSON object", "what `aloft` wrote");
  if (json.value("format", Json()) != "aloft-tokenizer" || json.value("version", Json()) != 1)
    refuse_tokenizer(file, "another format or version", "format aloft-tokenizer, version 1");
  return json;
}

const TokenizerKind& kind_of(const Json& saved, const Path& file) {
  const Json name = saved.value("kind", Json());
  const TokenizerKind* kind =
      name.is_string() ? find_tokenizer_kind(name.get<std::string>()) : nullptr;
  if (!kind) refuse_tokenizer(file, "kind " + in_quotes(name.dump()), names_of_tokenizer_kinds());
  return *kind;
}

}  // namespace

std::string tokenizer_forms() {
  std::string forms = "a folder with " + std::string(kTokenizerFile);
  for (const TokenizerKind& kind : tokenizer_kinds())
    if (kind.published) forms += ", or " + std::string(kind.published->what);
  return forms;
}

bool is_tokenizer(const Path& path) {
  return path_exists(path / kTokenizerFile) || published_at(path) != nullptr;
}

std::unique_ptr<Tokenizer> load_tokenizer(const Path& path) {
  const Path file = path / kTokenizerFile;
  if (!path_exists(file)) {
    if (const TokenizerKind* kind = published_at(path)) return kind->published->open(path);
    throw DataError("E0503", "no tokenizer there").at(path.string()).need(tokenizer_forms());
  }
  const Json json = read_saved(file);
  return as_saved(kind_of(json, file).read(path, json), file, json);
}

std::string kind_of_tokenizer(const Path& path) {
  const Path file = path / kTokenizerFile;
  if (path_exists(file)) return std::string(kind_of(read_saved(file), file).name);
  const TokenizerKind* kind = published_at(path);
  if (!kind)
    throw DataError("E0503", "no tokenizer there").at(path.string()).need(tokenizer_forms());
  return std::string(kind->name);
}

}  // namespace aloft

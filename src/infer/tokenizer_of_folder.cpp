#include "infer/tokenizer_of_folder.h"

#include "base/error.h"
#include "data/tokenizers/tokenizer_kind.h"

namespace aloft {
namespace {

constexpr const char* kJson = "tokenizer.json";

std::string text_of(const Path& file) {
  return path_exists(file) ? read_file(file, kMostTokenizerBytes) : "";
}

}  // namespace

std::string tokenizer_json_of(const Tokenizer& tokenizer) {
  const TokenizerKind* kind = find_tokenizer_kind(tokenizer.kind());
  return kind && kind->as_tokenizer_json ? kind->as_tokenizer_json(tokenizer) : "";
}

bool is_tokenizer_of(const Tokenizer& tokenizer, const Path& run, const Path& published) {
  const TokenizerKind* kind = find_tokenizer_kind(tokenizer.kind());
  const std::string there = text_of(published / kJson);
  // The same file is the same tokenizer: nothing is built of it a second time.
  if (!there.empty() && (there == text_of(run / kJson) || there == tokenizer_json_of(tokenizer)))
    return true;
  bool has_some = !there.empty();
  for (const Path& path : {published, published / "tokenizer.model"}) {
    has_some = has_some || is_tokenizer(path);
    if (!kind || !kind->published || !kind->published->lies_at(path)) continue;
    try {
      if (kind->published->open(path)->fingerprint() == tokenizer.fingerprint()) return true;
    } catch (const DataError&) {  // one that is not read here: the run has not learnt with it
    }
  }
  return !has_some && kind && !kind->make;
}

}  // namespace aloft

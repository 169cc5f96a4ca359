#include "data/build.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/tokenizers/tokenizer_kind.h"

namespace aloft {
namespace {

[[noreturn]] void no_such_kind(const std::string& name) {
  std::vector<std::string> known;
  for (const TokenizerKind& kind : tokenizer_kinds()) known.emplace_back(kind.name);
  const std::string nearest = nearest_name(name, known);
  throw UserError("E0505", "no such kind of tokenizer")
      .saw(in_quotes(name))
      .need(names_of_tokenizer_kinds())
      .advice(nearest.empty() ? "tokenizer = " + in_quotes(known.front()) : nearest);
}

std::unique_ptr<Tokenizer> load_as(const TokenizerSpec& spec) {
  auto tokenizer = load_tokenizer(spec.path);
  if (!spec.kind.empty() && tokenizer->kind() != spec.kind)
    throw UserError("E0505", "the tokenizer is of another kind")
        .at(spec.path)
        .saw("a tokenizer of the kind " + std::string(tokenizer->kind()))
        .need("one of the kind " + spec.kind + ", which data.tokenizer.kind says")
        .advice("data.tokenizer.path without data.tokenizer.kind: what lies there says its kind");
  return tokenizer;
}

}  // namespace

std::string usual_tokenizer_kind() {
  return std::string(std::ranges::find(tokenizer_kinds(), true, &TokenizerKind::is_usual)->name);
}

SettingValues tokenizer_settings() {
  SettingValues out;
  for (const TokenizerKind& kind : tokenizer_kinds())
    for (const Setting& s : kind.settings) out.emplace(s.key, s.fallback);
  return out;
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerSpec& spec, const Corpus& corpus,
                                          const CorpusSplit& split) {
  const TokenizerKind* kind = find_tokenizer_kind(spec.kind);
  if (!kind && (!spec.kind.empty() || spec.path.empty())) no_such_kind(spec.kind);
  if (!spec.path.empty()) return load_as(spec);
  const std::string name(kind->name);
  if (!kind->make)
    throw UserError("E0505", "a " + name + " tokenizer is loaded, not made")
        .saw("no path")
        .need(std::string(kind->published->what))
        .advice("tokenizer = { kind = " + in_quotes(name) + ", path = \"PATH\" }");
  return kind->make(kind->settings_of(spec.settings), corpus, split);
}

}  // namespace aloft

#include "data/build.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/utf8.h"

namespace aloft {
namespace {

constexpr std::string_view kKinds[] = {"byte", "char", "bpe", "gpt2"};

void check_kind(const TokenizerSpec& spec) {
  if (spec.kind.empty() && !spec.path.empty()) return;
  if (std::find(std::begin(kKinds), std::end(kKinds), spec.kind) == std::end(kKinds)) {
    const std::vector<std::string> known(std::begin(kKinds), std::end(kKinds));
    const std::string nearest = nearest_name(spec.kind, known);
    throw UserError("E0505", "no such kind of tokenizer")
        .saw(in_quotes(spec.kind))
        .need("byte, char, bpe or gpt2")
        .advice(nearest.empty() ? "tokenizer = { kind = \"bpe\", vocab = 4096 }" : nearest);
  }
  if (spec.kind == "gpt2" && spec.path.empty())
    throw UserError("E0505", "a gpt2 tokenizer is loaded, not made")
        .saw("no path")
        .need("a folder with vocab.json and merges.txt")
        .advice("tokenizer = { kind = \"gpt2\", path = \"FOLDER\" }");
}

std::unique_ptr<Tokenizer> load_as(const TokenizerSpec& spec) {
  auto tokenizer = load_tokenizer(spec.path);
  if (!spec.kind.empty() && tokenizer->kind() != spec.kind)
    throw UserError("E0505", "the tokenizer is of another kind")
        .at(spec.path)
        .saw(std::string(tokenizer->kind()))
        .need(spec.kind);
  return tokenizer;
}

std::unique_ptr<Tokenizer> make_char(const TokenizerSpec& spec, const Corpus& corpus,
                                     const CorpusSplit& split) {
  CharAlphabet alphabet;
  for (const auto* parts : {&split.train, &split.validation})
    for (const TextPart& part : *parts)
      read_part(corpus, part, utf8::safe_cut, [&](std::string_view text) { alphabet.add(text); });
  return alphabet.build(spec.byte_fallback ? ByteFallback::Always : ByteFallback::WhereNeeded);
}

std::unique_ptr<Tokenizer> make_bpe(const TokenizerSpec& spec, const Corpus& corpus,
                                    const CorpusSplit& split) {
  BpeSample sample(bytes_of(split.train), BpeSample::sensible_limit(spec.vocab));
  for (const TextPart& part : split.train)
    read_part(corpus, part, cut_at_line_end, [&](std::string_view text) { sample.add(text); });
  return train_bpe(sample, spec.vocab);
}

}  // namespace

std::span<const std::string_view> tokenizer_kinds() { return kKinds; }

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerSpec& spec, const Corpus& corpus,
                                          const CorpusSplit& split) {
  check_kind(spec);
  if (!spec.path.empty()) return load_as(spec);
  if (spec.kind == "byte") return make_byte_tokenizer();
  if (spec.kind == "char") return make_char(spec, corpus, split);
  return make_bpe(spec, corpus, split);
}

}  // namespace aloft

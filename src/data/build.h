// A tokenizer from what a recipe says: loaded from a path, or made from the text.
#pragma once

#include <memory>
#include <string>

#include "data/corpus.h"
#include "data/tokenizer.h"

namespace aloft {

struct TokenizerSpec {
  std::string kind = "bpe";    // byte, char, bpe, gpt2; empty with a path: whatever lies there
  std::int32_t vocab = 4096;   // bpe alone: the others' follows from the text or the files
  std::string path;            // load instead of making; gpt2 always needs it
  bool byte_fallback = false;  // char alone: accept every input, for 256 more ids
};

// The names of the kinds, for messages and help.
std::span<const std::string_view> tokenizer_kinds();

// `char` collects the characters of the whole corpus, validation included, so that both parts can
// be encoded; `bpe` learns from a sample of the training part alone (bpe_tokenizer.h). The same
// files and spec give the same tokenizer. UserError E0505: a kind that does not exist or another
// kind than the path holds; E0506: a vocabulary out of range. DataError E0503, E0504.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerSpec& spec, const Corpus& corpus,
                                          const CorpusSplit& split);

}  // namespace aloft

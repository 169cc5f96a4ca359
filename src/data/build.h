// A tokenizer from what a recipe says: loaded from a path, or made from the text.
#pragma once

#include <memory>
#include <string>

#include "data/corpus.h"
#include "data/tokenizer.h"
#include "types/setting.h"

namespace aloft {

// The first kind of tokenizers/catalog.inc.
std::string usual_tokenizer_kind();
// Settings of every kind, at their fallbacks.
SettingValues tokenizer_settings();

struct TokenizerSpec {
  // A name of tokenizers/catalog.inc; empty with a path: whatever lies there.
  std::string kind = usual_tokenizer_kind();
  std::string path;  // load instead of making; a kind that is not made always needs it
  // Of its kind; those of others mean nothing, and what is not given has its fallback.
  SettingValues settings = tokenizer_settings();
};

// The same files and spec give the same tokenizer. UserError E0505: a kind that does not exist, is
// not made, or another kind than the path holds; E0506: a setting that none can be made by.
// DataError E0503, E0504.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerSpec& spec, const Corpus& corpus,
                                          const CorpusSplit& split);

}  // namespace aloft

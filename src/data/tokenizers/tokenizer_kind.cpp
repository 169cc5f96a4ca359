#include "data/tokenizers/tokenizer_kind.h"

#include "base/error.h"

namespace aloft {

#define TOKENIZER(name) TokenizerKind name();
#include "data/tokenizers/catalog.inc"
#undef TOKENIZER

const std::vector<TokenizerKind>& tokenizer_kinds() {
  static const std::vector<TokenizerKind> all = {
#define TOKENIZER(name) name(),
#include "data/tokenizers/catalog.inc"
#undef TOKENIZER
  };
  return all;
}

const TokenizerKind* find_tokenizer_kind(std::string_view name) {
  for (const TokenizerKind& kind : tokenizer_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

std::string names_of_tokenizer_kinds() {
  const std::vector<TokenizerKind>& all = tokenizer_kinds();
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i)
    names += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + std::string(all[i].name);
  return names;
}

SettingValues TokenizerKind::settings_of(const SettingValues& given) const {
  SettingValues out;
  for (const Setting& s : settings) {
    const auto it = given.find(s.key);
    out.emplace(s.key, it == given.end() ? s.fallback : it->second);
  }
  return out;
}

void refuse_tokenizer(const Path& path, const std::string& saw, const std::string& need) {
  throw DataError("E0503", "not a usable tokenizer")
      .at(path.string())
      .saw(saw)
      .need(need)
      .advice("build it again, or copy it again whole");
}

}  // namespace aloft

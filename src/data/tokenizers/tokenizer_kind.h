// A kind of tokenizers: how one is set, made of text, read back, and recognised where others
// publish it, each said once. Recipes, `aloft recipes`, caches and folders follow from it.
// catalog.inc lists the kinds; what a tokenizer does, and how it is saved, is its class.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/corpus.h"
#include "data/tokenizer.h"
#include "types/setting.h"

namespace aloft {

// A setting that cannot be as it is: its key, and what is wrong: "20; need 257 or more".
struct WrongSetting {
  std::string_view key;
  std::string text;
};

// Files of others that such a tokenizer is read from.
struct PublishedTokenizer {
  std::string_view what;  // "a folder with vocab.json and merges.txt"
  bool (*lies_at)(const Path& path);
  std::unique_ptr<Tokenizer> (*open)(const Path& path);
};

struct TokenizerKind {
  std::string_view name, meaning;
  bool is_usual = false;  // what a recipe that names none makes of its text: one kind is
  // Keys of data.tokenizer besides `kind` and `path`. What two kinds call alike is alike in both.
  std::vector<Setting> settings;
  // Of text, by values of all settings; null where it is never made, only loaded as published. The
  // same text and settings give the same tokenizer.
  std::unique_ptr<Tokenizer> (*make)(const SettingValues& settings, const Corpus& corpus,
                                     const CorpusSplit& split) = nullptr;
  // What no tokenizer can be made by; nothing, or null, where all goes.
  std::optional<WrongSetting> (*misfit)(const SettingValues& settings) = nullptr;
  // Ids of what would be made, at most, where that is known without the text.
  std::optional<std::int64_t> (*ids)(const SettingValues& settings) = nullptr;
  // Reads back what the class saved: `saved` is the content of `folder`/kTokenizerFile.
  std::unique_ptr<Tokenizer> (*read)(const Path& folder, const nlohmann::json& saved) = nullptr;
  std::optional<PublishedTokenizer> published = std::nullopt;
  // One of this kind as a tokenizer.json for Hugging Face's `tokenizers`, with the same ids of text
  // in UTF-8; "", or null, where it is not written so.
  std::string (*as_tokenizer_json)(const Tokenizer& tokenizer) = nullptr;

  // `given`, and the fallbacks of what it does not say, of this kind's settings alone.
  SettingValues settings_of(const SettingValues& given) const;
};

// Every kind, in the order of the catalogue.
const std::vector<TokenizerKind>& tokenizer_kinds();
// Null where there is none of the name.
const TokenizerKind* find_tokenizer_kind(std::string_view name);
// "bpe, byte or char"
std::string names_of_tokenizer_kinds();

// Files of tokenizers are not read beyond this.
inline constexpr std::uint64_t kMostTokenizerBytes = std::uint64_t{256} << 20;

// DataError E0503.
[[noreturn]] void refuse_tokenizer(const Path& path, const std::string& saw,
                                   const std::string& need);

}  // namespace aloft

// Byte pair encoding: characters, of which neighbours merge by rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizers/parts/word_model.h"

namespace aloft::parts {

// What tokenizer.json says of it besides vocabulary and merges.
struct BpeRules {
  std::string unknown;         // the token of what is unknown; "": such characters are left out
  std::string prefix;          // of all characters of a word but the first
  std::string suffix;          // of a word's last character
  bool fuse_unknown = false;   // neighbours without a token are one unknown
  bool byte_fallback = false;  // their bytes' tokens instead, where all are there
  bool ignore_merges = false;  // a word that is a token is that token
};

struct BpePair {
  std::int32_t left, right, result;  // ids
  std::int32_t rank;                 // the lowest merges first; of equal ones the leftmost
};

// A pair that comes twice counts where it comes last.
std::unique_ptr<WordModel> make_bpe(Vocabulary vocabulary, const std::vector<BpePair>& pairs,
                                    BpeRules rules);

}  // namespace aloft::parts

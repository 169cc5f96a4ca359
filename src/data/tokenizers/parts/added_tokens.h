// Tokens that were added to a model, found in a text before anything else is done to it: the part
// `added_tokens` of tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/parts/byte_trie.h"
#include "data/tokenizers/parts/json_place.h"
#include "data/tokenizers/parts/vocabulary.h"

namespace aloft::parts {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;             // only where no word's character stands beside it
  bool lstrip = false, rstrip = false;  // takes the white space on its side along
  bool normalized = false;  // found in the normal form of a text, in a normal form of its own
  bool special = false;     // for the model, not for readers
};

// Reads the list. Ids are those that Hugging Face's library gives: of the vocabulary, or the next
// one. E0519: a key that is not known, an id that would be another one.
std::vector<AddedToken> read_added_tokens(const JsonPlace& place, const Vocabulary& vocabulary);

// Finds tokens from left to right, the longest at each place.
class TokenFinder {
 public:
  // `text`: in which form it is looked for. The first of equal ones counts.
  void put(std::string_view text, const AddedToken& token);
  bool empty() const { return tokens_.empty(); }

  // Calls between(part, is_first) and found(token, begin, end) for all of a text, in order; the
  // first part begins where the text does.
  template <class Between, class Found>
  void walk(std::string_view text, Between between, Found found) const {
    std::size_t told = 0;
    Hit hit;
    for (std::size_t from = 0; !tokens_.empty() && find(text, from, hit);) {
      from = hit.end;
      if (!stands_alone(text, hit)) continue;
      widen(text, told, hit);
      if (told < hit.begin) between(text.substr(told, hit.begin - told), told == 0);
      found(*hit.token, hit.begin, hit.end);
      told = hit.end;
    }
    if (told < text.size()) between(text.substr(told), told == 0);
  }

 private:
  struct Hit {
    std::size_t begin, end;
    const AddedToken* token;
  };
  bool find(std::string_view text, std::size_t from, Hit& hit) const;
  static bool stands_alone(std::string_view text, const Hit& hit);
  static void widen(std::string_view text, std::size_t told, Hit& hit);

  ByteTrie trie_;
  std::vector<AddedToken> tokens_;
};

}  // namespace aloft::parts

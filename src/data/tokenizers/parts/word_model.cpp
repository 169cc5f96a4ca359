#include "data/tokenizers/parts/word_model.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "data/tokenizers/parts/kind_of_part.h"

namespace aloft::parts {
namespace {

struct Kind {
  std::string_view type;
  std::unique_ptr<WordModel> (*read)(const JsonPlace& place);
};

constexpr Kind kKinds[] = {
    {"BPE", read_bpe},
    {"Unigram", read_unigram},
    {"WordLevel", read_word_level},
    {"WordPiece", read_word_piece},
};

// Files of before there was a `type`: every model but WordLevel has a key of its own.
std::string type_of(const JsonPlace& place) {
  if (place.find("type")) return place.type();
  if (place.find("merges")) return "BPE";
  if (place.find("continuing_subword_prefix")) return "WordPiece";
  const auto vocab = place.find("vocab");
  if (vocab && vocab->is_list()) return "Unigram";
  return place.type();
}

}  // namespace

void WordModel::refuse_word(std::string_view word) const {
  throw DataError("E0501", "a text that the tokenizer has no token for")
      .saw(in_quotes(word))
      .need("a vocabulary with its token for what is unknown");
}

std::unique_ptr<WordModel> read_word_model(const JsonPlace& place) {
  return kind_of_part(place, type_of(place), kKinds, "the model").read(place);
}

std::string token_of_byte(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

}  // namespace aloft::parts

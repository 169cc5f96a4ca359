// WordPiece: of a word the longest token that it begins with, then of the rest the longest that may
// go on; a word with a place where none fits is unknown as a whole.
#include "data/tokenizers/parts/byte_trie.h"
#include "data/tokenizers/parts/word_model.h"

namespace aloft::parts {
namespace {

class WordPieceModel final : public WordModel {
 public:
  WordPieceModel(Vocabulary vocabulary, const std::string& unknown, const std::string& prefix,
                 std::int64_t most_characters)
      : WordModel(std::move(vocabulary)), most_characters_(most_characters) {
    const Vocabulary& tokens = this->vocabulary();
    for (std::int32_t id = 0; id < tokens.end(); ++id)
      if (tokens.has(id)) trie_.put(tokens.text_of(id), id);
    going_on_ = trie_.walk(prefix);
    unknown_ = tokens.id_of(unknown);
  }

  void encode(std::string_view word, ModelSpace&, std::vector<std::int32_t>& ids) const override {
    const std::size_t before = ids.size();
    bool fits = characters(word) <= most_characters_;
    for (std::size_t at = 0; fits && at < word.size();) {
      std::int32_t node = at == 0 ? ByteTrie::kRoot : going_on_, id = Vocabulary::kNone;
      std::size_t end = at;
      for (std::size_t i = at; i < word.size() && node != ByteTrie::kNowhere;) {
        node = trie_.next(node, static_cast<unsigned char>(word[i++]));
        if (node == ByteTrie::kNowhere || trie_.value(node) < 0) continue;
        id = trie_.value(node);
        end = i;
      }
      fits = id >= 0;
      if (fits) ids.push_back(id);
      at = end;
    }
    if (fits) return;
    ids.resize(before);
    if (unknown_ < 0) refuse_word(word);
    ids.push_back(unknown_);
  }

 private:
  static std::int64_t characters(std::string_view word) {
    std::int64_t count = 0;
    for (char c : word) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return count;
  }

  ByteTrie trie_;
  std::int32_t going_on_ = ByteTrie::kNowhere, unknown_ = Vocabulary::kNone;
  std::int64_t most_characters_;
};

}  // namespace

std::unique_ptr<WordModel> read_word_piece(const JsonPlace& place) {
  place.know_only({"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  return std::make_unique<WordPieceModel>(Vocabulary::of_object(place.at("vocab")),
                                          place.at("unk_token").text(),
                                          place.at("continuing_subword_prefix").text(),
                                          place.at("max_input_chars_per_word").whole(0, INT64_MAX));
}

}  // namespace aloft::parts

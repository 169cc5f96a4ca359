// WordLevel: words are tokens, and what is no token is unknown.
#include "data/tokenizers/parts/word_model.h"

namespace aloft::parts {
namespace {

class WordLevelModel final : public WordModel {
 public:
  WordLevelModel(Vocabulary vocabulary, const std::string& unknown)
      : WordModel(std::move(vocabulary)), unknown_(this->vocabulary().id_of(unknown)) {}

  void encode(std::string_view word, ModelSpace&, std::vector<std::int32_t>& ids) const override {
    const std::int32_t found = vocabulary().id_of(word), id = found >= 0 ? found : unknown_;
    if (id < 0) refuse_word(word);
    ids.push_back(id);
  }

 private:
  std::int32_t unknown_;
};

}  // namespace

std::unique_ptr<WordModel> read_word_level(const JsonPlace& place) {
  place.know_only({"unk_token", "vocab"});
  return std::make_unique<WordLevelModel>(Vocabulary::of_object(place.at("vocab")),
                                          place.at("unk_token").text());
}

}  // namespace aloft::parts

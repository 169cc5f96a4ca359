// Unigram: of all ways to cut a word into tokens the one whose logarithms of probability have the
// largest sum.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/tokenizers/parts/byte_trie.h"
#include "data/tokenizers/parts/word_model.h"
#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

constexpr double kUnknownPenalty = 10;  // below the least of the vocabulary
constexpr std::size_t kNoWay = ~std::size_t{0};

class UnigramModel final : public WordModel {
 public:
  UnigramModel(Vocabulary vocabulary, std::vector<double> scores, std::int32_t unknown,
               bool byte_fallback)
      : WordModel(std::move(vocabulary)),
        scores_(std::move(scores)),
        unknown_(unknown),
        byte_fallback_(byte_fallback) {
    const Vocabulary& tokens = this->vocabulary();
    for (std::int32_t id = 0; id < tokens.end(); ++id) trie_.put(tokens.text_of(id), id);
    for (double score : scores_) least_ = std::min(least_, score);
    for (int b = 0; b < 256; ++b)
      byte_ids_[static_cast<std::size_t>(b)] =
          tokens.id_of(token_of_byte(static_cast<unsigned char>(b)));
  }

  void encode(std::string_view word, ModelSpace& space,
              std::vector<std::int32_t>& ids) const override {
    find_best(word, space);
    // From the end back: what is unknown side by side is one.
    const std::size_t before = ids.size();
    std::size_t end = word.size();
    while (end > 0) {
      const ModelSpace::Step& last = space.steps[end];
      std::size_t begin = last.from;
      if (last.id == unknown_)
        while (begin > 0 && space.steps[begin].id == unknown_) begin = space.steps[begin].from;
      push_back_to_front(word.substr(begin, end - begin), last.id, ids);
      end = begin;
    }
    std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
  }

 private:
  void find_best(std::string_view word, ModelSpace& space) const {
    auto& steps = space.steps;
    steps.assign(word.size() + 1, {0, kNoWay, 0});
    const double unknown_score = least_ - kUnknownPenalty;
    for (std::size_t at = 0; at < word.size();) {
      const double here = steps[at].score;
      const std::size_t length = utf8::step(word, at).length;
      bool has_single = false;
      const auto offer = [&](std::size_t end, double score, std::int32_t id) {
        ModelSpace::Step& target = steps[end];
        if (target.from == kNoWay || score > target.score) target = {score, at, id};
      };
      std::int32_t node = ByteTrie::kRoot;
      for (std::size_t end = at; end < word.size();) {
        node = trie_.next(node, static_cast<unsigned char>(word[end++]));
        if (node == ByteTrie::kNowhere) break;
        const std::int32_t id = trie_.value(node);
        if (id < 0) continue;
        offer(end, here + scores_[static_cast<std::size_t>(id)], id);
        has_single |= end - at == length;
      }
      if (!has_single) {
        if (unknown_ < 0) refuse_word(word.substr(at, length));
        offer(at + length, here + unknown_score, unknown_);
      }
      at += length;
    }
  }

  void push_back_to_front(std::string_view text, std::int32_t id,
                          std::vector<std::int32_t>& ids) const {
    if (id != unknown_) {
      ids.push_back(id);
      return;
    }
    // Characters that are unknown one by one may be a token together.
    const std::int32_t whole = vocabulary().id_of(text);
    if (whole >= 0) {
      ids.push_back(whole);
      return;
    }
    const auto byte_id = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
    if (byte_fallback_ &&
        std::all_of(text.begin(), text.end(), [&](char c) { return byte_id(c) >= 0; })) {
      for (std::size_t i = text.size(); i-- > 0;) ids.push_back(byte_id(text[i]));
      return;
    }
    ids.push_back(unknown_);
  }

  ByteTrie trie_;
  std::vector<double> scores_;
  double least_ = HUGE_VAL;
  std::int32_t unknown_;
  bool byte_fallback_;
  std::array<std::int32_t, 256> byte_ids_{};
};

}  // namespace

std::unique_ptr<WordModel> read_unigram(const JsonPlace& place) {
  place.know_only({"unk_id", "vocab", "byte_fallback"});
  const JsonPlace vocab = place.at("vocab");
  Vocabulary vocabulary;
  std::vector<double> scores;
  if (!vocab.is_list() || vocab.json().empty()) vocab.refuse("no list", "[[token, score], ...]");
  if (vocab.json().size() > static_cast<std::size_t>(kMostIds))
    vocab.refuse(std::to_string(vocab.json().size()) + " tokens",
                 std::to_string(kMostIds) + " at most");
  for (std::size_t i = 0; i < vocab.json().size(); ++i) {
    const JsonPlace one(vocab.json()[i], place.file(), vocab.way() + "[" + std::to_string(i) + "]");
    const auto parts = one.items();
    if (parts.size() != 2) one.refuse("a list of " + std::to_string(parts.size()), "two");
    vocabulary.add(parts[0].text());
    scores.push_back(parts[1].number());
  }
  const auto unknown = place.find("unk_id");
  const auto id = unknown ? unknown->whole(0, static_cast<std::int64_t>(scores.size()) - 1) : -1;
  return std::make_unique<UnigramModel>(std::move(vocabulary), std::move(scores),
                                        static_cast<std::int32_t>(id),
                                        place.flag_or("byte_fallback", false));
}

}  // namespace aloft::parts

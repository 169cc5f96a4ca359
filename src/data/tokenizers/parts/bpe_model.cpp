#include "data/tokenizers/parts/bpe_model.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "data/tokenizers/parts/pair_table.h"
#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
constexpr std::int32_t kMergedAway = -2;
// Up to so many symbols, looking at all neighbours for each merge is faster than a heap.
constexpr std::size_t kFewSymbols = 24;

class BpeModel final : public WordModel {
 public:
  BpeModel(Vocabulary vocabulary, const std::vector<BpePair>& pairs, BpeRules rules)
      : WordModel(std::move(vocabulary)), rules_(std::move(rules)), merges_(pairs.size()) {
    const Vocabulary& tokens = this->vocabulary();
    for (const BpePair& p : pairs) merges_.put(p.left, p.right, {p.rank, p.result});
    for (int b = 0; b < 256; ++b)
      byte_ids_[static_cast<std::size_t>(b)] =
          tokens.id_of(token_of_byte(static_cast<unsigned char>(b)));
    if (!rules_.unknown.empty()) unknown_ = tokens.id_of(rules_.unknown);
    for (char32_t c = 0; c < kLowCodes; ++c) {
      std::string text;
      utf8::append(text, c);
      low_ids_[c] = tokens.id_of(text);
    }
    is_plain_ = rules_.prefix.empty() && rules_.suffix.empty();
    cuts_at_marks_ = is_plain_ && !rules_.ignore_merges && marks_only_begin_tokens();
  }

  void encode(std::string_view word, ModelSpace& space,
              std::vector<std::int32_t>& ids) const override {
    if (rules_.ignore_merges)
      if (const std::int32_t id = vocabulary().id_of(word); id >= 0) {
        ids.push_back(id);
        return;
      }
    spell(word, space);
    if (space.symbols.size() <= kFewSymbols)
      merge_few(space);
    else
      merge_many(space);
    for (const ModelSpace::Symbol& s : space.symbols)
      if (s.id != kMergedAway) ids.push_back(s.id);
  }

  // Before a mark for a space behind anything else, where no token reaches across such a place.
  std::size_t part_end(std::string_view word, std::size_t begin) const override {
    if (!cuts_at_marks_) return word.size();
    std::size_t at = begin;
    while (word.substr(at).starts_with(kSpaceMark)) at += kSpaceMark.size();
    return std::min(word.find(kSpaceMark, at), word.size());
  }

 private:
  static constexpr char32_t kLowCodes = 0x250;

  bool marks_only_begin_tokens() const {
    const Vocabulary& tokens = vocabulary();
    if (tokens.id_of(kSpaceMark) < 0) return false;
    for (std::int32_t id = 0; id < tokens.end(); ++id) {
      std::string_view text = tokens.text_of(id);
      while (text.starts_with(kSpaceMark)) text.remove_prefix(kSpaceMark.size());
      if (text.find(kSpaceMark) != std::string_view::npos) return false;
    }
    return true;
  }

  void push(ModelSpace& space, std::int32_t id) const {
    const auto at = static_cast<std::int32_t>(space.symbols.size());
    space.symbols.push_back({id, at - 1, at + 1});
  }

  // The word's characters as symbols.
  void spell(std::string_view word, ModelSpace& space) const {
    space.symbols.clear();
    bool has_unknown = false;  // one that is still to be pushed
    const auto flush = [&] {
      if (has_unknown) push(space, unknown_);
      has_unknown = false;
    };
    for (std::size_t at = 0; at < word.size();) {
      const utf8::Step step = utf8::step(word, at);
      std::string_view text = word.substr(at, step.length);
      std::int32_t id;
      if (is_plain_) {
        id = step.code < kLowCodes ? low_ids_[step.code] : vocabulary().id_of(text);
      } else {
        space.text = at > 0 ? rules_.prefix : "";
        space.text += text;
        if (at + step.length == word.size()) space.text += rules_.suffix;
        text = space.text;
        id = vocabulary().id_of(text);
      }
      at += step.length;
      if (id >= 0) {
        flush();
        push(space, id);
      } else if (rules_.byte_fallback && has_all_bytes(text)) {
        // What was unknown before stays behind these, as in Hugging Face's library.
        for (char c : text) push(space, byte_ids_[static_cast<unsigned char>(c)]);
      } else if (!rules_.unknown.empty()) {
        if (unknown_ < 0) refuse_word(text);
        if (!rules_.fuse_unknown) flush();
        has_unknown = true;
      }
    }
    flush();
  }

  bool has_all_bytes(std::string_view text) const {
    return std::all_of(text.begin(), text.end(),
                       [this](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; });
  }

  // Always the pair of lowest rank, of equal ones the leftmost, until none merges. Symbols are kept
  // side by side.
  void merge_few(ModelSpace& space) const {
    auto& symbols = space.symbols;
    std::array<Merge, kFewSymbols> next;  // of a symbol with its right neighbour
    std::size_t count = symbols.size();
    for (std::size_t i = 0; i + 1 < count; ++i)
      next[i] = merges_.find(symbols[i].id, symbols[i + 1].id);
    while (count > 1) {
      std::size_t best = count;
      std::int32_t rank = INT32_MAX;
      for (std::size_t i = 0; i + 1 < count; ++i)
        if (next[i].rank >= 0 && next[i].rank < rank) {
          rank = next[i].rank;
          best = i;
        }
      if (best == count) break;
      symbols[best].id = next[best].result;
      for (std::size_t i = best + 1; i + 1 < count; ++i) {
        symbols[i] = symbols[i + 1];
        next[i] = next[i + 1];
      }
      --count;
      if (best + 1 < count) next[best] = merges_.find(symbols[best].id, symbols[best + 1].id);
      if (best > 0) next[best - 1] = merges_.find(symbols[best - 1].id, symbols[best].id);
    }
    symbols.resize(count);
  }

  // The same by a heap of candidates over a linked list: n log n.
  void merge_many(ModelSpace& space) const {
    auto& symbols = space.symbols;
    auto& heap = space.candidates;
    heap.clear();
    const auto count = static_cast<std::int32_t>(symbols.size());
    using Candidate = ModelSpace::Candidate;
    const auto later = [](const Candidate& a, const Candidate& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
    };
    const auto symbol = [&](std::int32_t at) -> ModelSpace::Symbol& {
      return symbols[static_cast<std::size_t>(at)];
    };
    const auto offer = [&](std::int32_t left) {
      if (left < 0 || symbol(left).next >= count) return;
      const std::int32_t a = symbol(left).id, b = symbol(symbol(left).next).id;
      const Merge merge = merges_.find(a, b);
      if (merge.rank < 0) return;
      heap.push_back({merge.rank, left, a, b, merge.result});
      std::push_heap(heap.begin(), heap.end(), later);
    };
    for (std::int32_t i = 0; i + 1 < count; ++i) offer(i);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      const Candidate best = heap.back();
      heap.pop_back();
      ModelSpace::Symbol& left = symbol(best.left);
      if (left.id != best.left_id || left.next >= count) continue;  // out of date
      ModelSpace::Symbol& right = symbol(left.next);
      if (right.id != best.right_id) continue;
      left.id = best.result;
      right.id = kMergedAway;
      left.next = right.next;
      if (left.next < count) symbol(left.next).previous = best.left;
      offer(left.previous);
      offer(best.left);
    }
  }

  BpeRules rules_;
  PairTable merges_;
  std::array<std::int32_t, 256> byte_ids_{};
  std::array<std::int32_t, kLowCodes> low_ids_{};
  std::int32_t unknown_ = Vocabulary::kNone;
  bool is_plain_ = true, cuts_at_marks_ = false;
};

// "a b", or ["a", "b"], where tokens may hold spaces.
std::pair<std::string, std::string> read_merge(const JsonPlace& place) {
  if (place.is_list()) {
    const auto parts = place.items();
    if (parts.size() != 2) place.refuse("a list of " + std::to_string(parts.size()), "two tokens");
    return {parts[0].text(), parts[1].text()};
  }
  const std::string text = place.text();
  const auto parts = split(text, ' ');
  if (parts.size() != 2) place.refuse(in_quotes(text), "two tokens with a space between them");
  return {std::string(parts[0]), std::string(parts[1])};
}

}  // namespace

std::unique_ptr<WordModel> make_bpe(Vocabulary vocabulary, const std::vector<BpePair>& pairs,
                                    BpeRules rules) {
  return std::make_unique<BpeModel>(std::move(vocabulary), pairs, std::move(rules));
}

std::unique_ptr<WordModel> read_bpe(const JsonPlace& place) {
  place.know_only({"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                   "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  const auto dropout = place.find("dropout");
  if (dropout && dropout->number() != 0)
    dropout->refuse("merges left out at random", "null or 0: a text has one writing here");
  BpeRules rules;
  rules.unknown = place.text_or("unk_token", "");
  rules.prefix = place.text_or("continuing_subword_prefix", "");
  rules.suffix = place.text_or("end_of_word_suffix", "");
  rules.fuse_unknown = place.flag_or("fuse_unk", false);
  rules.byte_fallback = place.flag_or("byte_fallback", false);
  rules.ignore_merges = place.flag_or("ignore_merges", false);
  Vocabulary vocabulary = Vocabulary::of_object(place.at("vocab"));
  const JsonPlace merges = place.at("merges");
  std::vector<BpePair> pairs;
  if (!merges.is_list()) merges.refuse("another value", "a list of merges");
  pairs.reserve(merges.json().size());
  for (std::size_t i = 0; i < merges.json().size(); ++i) {
    const JsonPlace one(merges.json()[i], place.file(),
                        merges.way() + "[" + std::to_string(i) + "]");
    if (one.is_text() && one.text().starts_with("#version")) continue;  // of merges.txt
    const auto [left, right] = read_merge(one);
    const auto id_of = [&](const std::string& token) {
      const std::int32_t id = vocabulary.id_of(token);
      if (id < 0) one.refuse(in_quotes(token), "tokens of the vocabulary that make another one");
      return id;
    };
    if (right.size() < rules.prefix.size())
      one.refuse(in_quotes(right), "a second token that begins with " + in_quotes(rules.prefix));
    pairs.push_back({id_of(left), id_of(right), id_of(left + right.substr(rules.prefix.size())),
                     static_cast<std::int32_t>(i)});
  }
  return make_bpe(std::move(vocabulary), pairs, std::move(rules));
}

}  // namespace aloft::parts

#include "data/tokenizers/parts/added_tokens.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "data/tokenizers/parts/unicode.h"
#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

// The character that ends at `end` (> 0) of a text that is UTF-8.
utf8::Step step_before(std::string_view text, std::size_t end) {
  std::size_t begin = end - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return utf8::step(text, begin);
}

AddedToken read_one(const JsonPlace& place) {
  place.know_keys({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken t;
  t.content = place.at("content").text();
  t.id = static_cast<std::int32_t>(place.at("id").whole(0, kMostIds - 1));
  t.single_word = place.at("single_word").flag();
  t.lstrip = place.at("lstrip").flag();
  t.rstrip = place.at("rstrip").flag();
  t.normalized = place.at("normalized").flag();
  t.special = place.at("special").flag();
  return t;
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const JsonPlace& place, const Vocabulary& vocabulary) {
  std::vector<AddedToken> all;
  const auto size = static_cast<std::int64_t>(vocabulary.count());
  std::int64_t largest = -1;  // id of an added token
  std::unordered_map<std::string, std::int32_t> ids;
  for (const JsonPlace& one : place.items()) {
    AddedToken token = read_one(one);
    if (token.content.empty()) one.refuse("an empty content", "a text");
    const auto before = ids.find(token.content);
    const std::int32_t own = vocabulary.id_of(token.content);
    const std::int64_t id = before != ids.end() ? before->second
                            : own >= 0          ? own
                                                : std::max(largest + 1, size);
    if (id != token.id)
      one.refuse("id " + std::to_string(token.id) + " of " + in_quotes(token.content),
                 "id " + std::to_string(id) +
                     ", which Hugging Face's library gives it whatever the file says");
    largest = std::max(largest, id);
    ids.emplace(token.content, token.id);
    all.push_back(std::move(token));
  }
  return all;
}

void TokenFinder::put(std::string_view text, const AddedToken& token) {
  const std::int32_t node = trie_.walk(text);
  if (text.empty() || (node != ByteTrie::kNowhere && trie_.value(node) >= 0)) return;
  trie_.put(text, static_cast<std::int32_t>(tokens_.size()));
  tokens_.push_back(token);
}

bool TokenFinder::find(std::string_view text, std::size_t from, Hit& hit) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    std::int32_t node = trie_.next(ByteTrie::kRoot, static_cast<unsigned char>(text[begin]));
    if (node == ByteTrie::kNowhere) continue;
    std::int32_t best = -1;
    std::size_t end = begin + 1;
    for (std::size_t at = begin + 1; node != ByteTrie::kNowhere; ++at) {
      if (trie_.value(node) >= 0) {
        best = trie_.value(node);
        end = at;
      }
      if (at == text.size()) break;
      node = trie_.next(node, static_cast<unsigned char>(text[at]));
    }
    if (best < 0) continue;
    hit = {begin, end, &tokens_[static_cast<std::size_t>(best)]};
    return true;
  }
  return false;
}

bool TokenFinder::stands_alone(std::string_view text, const Hit& hit) {
  if (!hit.token->single_word) return true;
  const bool joins_left = hit.begin > 0 && unicode::is_word(step_before(text, hit.begin).code);
  const bool joins_right =
      hit.end < text.size() && unicode::is_word(utf8::step(text, hit.end).code);
  return !joins_left && !joins_right;
}

void TokenFinder::widen(std::string_view text, std::size_t told, Hit& hit) {
  if (hit.token->lstrip)
    while (hit.begin > told) {
      const utf8::Step before = step_before(text, hit.begin);
      if (!unicode::is_space(before.code)) break;
      hit.begin -= before.length;
    }
  if (hit.token->rstrip)
    while (hit.end < text.size()) {
      const utf8::Step after = utf8::step(text, hit.end);
      if (!unicode::is_space(after.code)) break;
      hit.end += after.length;
    }
}

}  // namespace aloft::parts

#include "data/tokenizers/parts/vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/text.h"

namespace aloft::parts {
namespace {

constexpr std::size_t kFewIds = std::size_t{1} << 16, kMostGap = 4;

}  // namespace

std::int64_t most_ids(std::size_t tokens) {
  return static_cast<std::int64_t>(std::min<std::size_t>(kMostIds, kFewIds + kMostGap * tokens));
}

std::size_t Vocabulary::Hash::operator()(std::string_view text) const { return hash64(text); }

Vocabulary Vocabulary::of_object(const JsonPlace& place) {
  if (!place.is_object()) place.refuse("another value", "an object {token: id, ...}");
  Vocabulary made;
  const std::size_t count = place.json().size();
  made.ids_.reserve(count);
  const std::int64_t most = most_ids(count);
  for (const auto& [token, id] : place.json().items()) {
    const JsonPlace at(id, place.file(), place.way() + "." + in_quotes(token));
    made.put(token, at.whole(0, most - 1), at);
  }
  return made;
}

void Vocabulary::add(std::string text) {
  ids_.insert_or_assign(text, end());
  texts_.push_back(std::move(text));
  is_there_.push_back(true);
}

void Vocabulary::put(std::string text, std::int64_t id, const JsonPlace& place) {
  const auto at = static_cast<std::size_t>(id);
  if (at >= texts_.size()) {
    texts_.resize(at + 1);
    is_there_.resize(at + 1);
  }
  if (is_there_[at])
    place.refuse(
        "id " + std::to_string(id) + " for " + in_quotes(text) + " and " + in_quotes(texts_[at]),
        "an id of its own for each");
  is_there_[at] = true;
  ids_.insert_or_assign(text, static_cast<std::int32_t>(id));
  texts_[at] = std::move(text);
}

}  // namespace aloft::parts

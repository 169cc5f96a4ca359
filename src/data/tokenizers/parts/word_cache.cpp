#include "data/tokenizers/parts/word_cache.h"

namespace aloft::parts {

WordCache::Found WordCache::find(std::string_view word, std::uint64_t hash) const {
  if (entries_.empty()) return {false, {}};
  for (std::size_t at = hash & (kEntries - 1);; at = (at + 1) & (kEntries - 1)) {
    const Entry& e = entries_[at];
    if (e.length == 0) return {false, {}};
    if (e.hash == hash && e.length == word.size() &&
        std::memcmp(texts_.data() + e.text, word.data(), word.size()) == 0)
      return {true, {ids_.data() + e.ids, e.count}};
  }
}

void WordCache::put(std::string_view word, std::uint64_t hash, std::span<const std::int32_t> ids) {
  if (word.empty() || word.size() > kLongestWord || ids.size() > UINT16_MAX) return;
  if (entries_.empty() || used_ * 2 >= kEntries) {
    entries_.assign(kEntries, {});
    texts_.clear();
    ids_.clear();
    used_ = 0;
  }
  std::size_t at = hash & (kEntries - 1);
  while (entries_[at].length != 0) at = (at + 1) & (kEntries - 1);
  entries_[at] = {hash, static_cast<std::uint32_t>(texts_.size()),
                  static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(word.size()),
                  static_cast<std::uint16_t>(ids.size())};
  texts_.insert(texts_.end(), word.begin(), word.end());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++used_;
}

}  // namespace aloft::parts

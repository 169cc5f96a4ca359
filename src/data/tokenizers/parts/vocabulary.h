// The tokens of a model: texts to ids and back. Ids need not be without gaps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizers/parts/json_place.h"

namespace aloft::parts {

// Ids are below it, so that a file cannot ask for a table of any size.
inline constexpr std::int64_t kMostIds = 1 << 24;
// What the ids of so many tokens are below: gaps are there, but a small file asks for no large
// table.
std::int64_t most_ids(std::size_t tokens);

class Vocabulary {
 public:
  static constexpr std::int32_t kNone = -1;

  // Of {token: id, ...}. E0519: an id that is none or that two have.
  static Vocabulary of_object(const JsonPlace& place);
  // Ids as they come. A text that comes twice keeps its last id.
  void add(std::string text);
  // A gap, or `at` beyond the last id. E0519 at `place` where the id is taken.
  void put(std::string text, std::int64_t id, const JsonPlace& place);

  // kNone where there is none.
  std::int32_t id_of(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? kNone : found->second;
  }
  // "" for a gap.
  std::string_view text_of(std::int32_t id) const { return texts_[static_cast<std::size_t>(id)]; }
  bool has(std::int32_t id) const {
    return id >= 0 && id < end() && is_there_[static_cast<std::size_t>(id)];
  }
  std::int32_t end() const { return static_cast<std::int32_t>(texts_.size()); }  // beyond all ids
  std::size_t count() const { return ids_.size(); }                              // of texts

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const;
  };
  std::vector<std::string> texts_;
  std::vector<bool> is_there_;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
};

}  // namespace aloft::parts

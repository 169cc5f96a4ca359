// The ids of words that have been met: most words of a text are old ones. Open addressing over two
// arenas; a cache that is full begins anew. One a thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace aloft::parts {

class WordCache {
 public:
  // Longer words hardly come again.
  static constexpr std::size_t kLongestWord = 128;

  struct Found {
    bool is_there;
    std::span<const std::int32_t> ids;
  };
  Found find(std::string_view word, std::uint64_t hash) const;
  void put(std::string_view word, std::uint64_t hash, std::span<const std::int32_t> ids);

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t text = 0, ids = 0;  // where they begin
    std::uint16_t length = 0;         // 0: free
    std::uint16_t count = 0;
  };
  static constexpr std::size_t kEntries = std::size_t{1} << 16;

  std::vector<Entry> entries_;
  std::vector<char> texts_;
  std::vector<std::int32_t> ids_;
  std::size_t used_ = 0;
};

}  // namespace aloft::parts

// Copies past the caches hold the same bytes, wherever both begin and however long they are.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "base/copy_past_caches.h"

namespace aloft {
namespace {

constexpr std::byte kOutside{0xee};

TEST(CopyPastCaches, WritesEachByteAndNoneBesideThem) {
  for (std::size_t from_at = 0; from_at < 17; ++from_at)
    for (std::size_t to_at = 0; to_at < 65; ++to_at)
      for (const std::size_t count : {0, 1, 15, 63, 64, 65, 127, 200, 333}) {
        std::vector<std::byte> from(from_at + count), to(to_at + count + 65, kOutside);
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::byte(i * 7 + 1);
        std::vector<std::byte> want = to;
        for (std::size_t i = 0; i < count; ++i) want[to_at + i] = from[from_at + i];
        copy_past_caches(std::span(from).subspan(from_at), std::span(to).subspan(to_at, count));
        ASSERT_EQ(to, want) << "from " << from_at << " to " << to_at << ", " << count << " bytes";
      }
}

}  // namespace
}  // namespace aloft

// Where a Plan's buffer lies, and what its bytes mean.
#pragma once

#include <cstddef>

#include "plan/lifetime.h"
#include "types/space.h"

namespace aloft {

// Part `index` of `count` about equal ones, which lies on the Plan's device `index`.
struct ShardIndex {
  int index = 0, count = 1;
  friend bool operator==(const ShardIndex&, const ShardIndex&) = default;
};

struct Placement {
  Space space = Space::Device;
  Layout layout = Layout::Dense;
  ShardIndex shard;
  std::size_t offset = 0;  // in its arena
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct ByteRange {
  std::size_t begin = 0, bytes = 0;
};

// What a shard holds of `bytes`: a multiple of the alignment, but for the last that holds any.
constexpr ByteRange range_of(ShardIndex shard, std::size_t bytes) {
  const auto count = static_cast<std::size_t>(shard.count);
  const std::size_t most = aligned((bytes + count - 1) / count);
  const std::size_t begin = most * static_cast<std::size_t>(shard.index);
  if (begin >= bytes) return {bytes, 0};
  return {begin, bytes - begin < most ? bytes - begin : most};
}

}  // namespace aloft

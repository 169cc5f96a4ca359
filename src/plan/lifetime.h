// Where buffers lie in memory: lifetimes in, offsets out. Pure functions; find_overlap judges them
// without what made them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace aloft {

// A buffer that is in use from instruction `first` to instruction `last`, both included.
struct Lifetime {
  int first = 0;
  int last = 0;
  std::size_t bytes = 0;
};

inline constexpr std::size_t kAlignment = 64;  // of every buffer: a cache line, an AVX-512 vector

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Offsets {
  std::vector<std::size_t> offsets;
  std::size_t peak = 0;         // end of the highest buffer
  std::size_t lower_bound = 0;  // the largest sum of bytes alive at once: no plan can be smaller
};

// Offsets such that buffers alive at the same time do not overlap. Greedy by size, then by length
// of life, into the lowest gap that fits, tried in several orders; the smallest peak wins.
// Deterministic. An order that takes more than kLooks looks a buffer (plan/occupancy.h) is given
// up, but for the first, so that time grows with the number of buffers; steps of 40 layers take up
// to 110. Where the best is above the lower bound, at most `nodes` nodes of a search
// (plan/place_search.h) look for a smaller one.
inline constexpr std::int64_t kLooks = 256;
inline constexpr std::int64_t kUsualNodes = 24000;  // a tenth of a second for 200 buffers
Offsets place(std::span<const Lifetime> buffers, std::int64_t nodes = kUsualNodes);

// The first pair that is alive together and overlaps, if any.
std::optional<std::pair<int, int>> find_overlap(std::span<const Lifetime> buffers,
                                                std::span<const std::size_t> offsets);

}  // namespace aloft

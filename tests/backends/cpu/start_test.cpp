// What a start spends its time on: normal numbers for the weights, memory that is zero, and values
// that move into an arena.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/copy.h"
#include "backends/cpu/elements/normal_pairs.h"
#include "backends/cpu/elements/random_words.h"
#include "backends/cpu/memory.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

// Also where the block's number outgrows 32 bits within a vector.
TEST(RandomWords, AreThoseOfTheDefinition) {
  const scalar::RandomKey key{5, 1u << 13, 3, ~std::uint64_t{8}};
  for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 34) - 512})
    for (const std::int64_t n : {1, 31, 64, 1000}) {
      std::vector<std::uint32_t> words(static_cast<std::size_t>(n) + 64);
      cpu::random_words(key, first, n, words.data());
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_EQ(words[static_cast<std::size_t>(i)],
                  scalar::random_bits(key, first + static_cast<std::uint64_t>(i)))
            << first << " + " << i;
    }
}

TEST(NormalPairs, AreThoseOfTheDefinition) {
  std::vector<std::uint32_t> words;
  // Every radius and angle at which something turns over, and their neighbours.
  std::vector<std::uint32_t> edges = {0, ~0u};
  for (std::uint32_t eighth = 0; eighth < 8; ++eighth)
    for (int near = -2; near <= 2; ++near)
      edges.push_back((eighth << 29) + static_cast<std::uint32_t>(near));
  for (const std::uint32_t radius : edges)
    for (const std::uint32_t angle : edges) words.insert(words.end(), {radius, angle});
  for (std::uint64_t i = 0; i < 1 << 20; ++i) words.push_back(scalar::random_bits({3, 1, 4, 1}, i));
  const std::size_t n = words.size();
  words.resize(n + 64);
  std::vector<double> drawn(n + 64);
  cpu::normal_pairs(words.data(), static_cast<std::int64_t>(n), drawn.data());
  int different_floats = 0;
  for (std::size_t i = 0; i < n; i += 2) {
    const auto want = scalar::normal_pair_of_bits(words[i], words[i + 1]);
    for (int half = 0; half < 2; ++half) {
      // The definition rounds the angle, up to 2 pi, to a double before it takes the cosine.
      ASSERT_NEAR(drawn[i + half], want[half], 1e-14) << words[i] << " " << words[i + 1];
      different_floats += static_cast<float>(drawn[i + half]) != static_cast<float>(want[half]) &&
                          std::abs(want[half]) > 1e-6;
    }
  }
  EXPECT_LE(different_floats, 4);
}

TEST(ZeroedMemory, IsAlignedZeroAndWritableToItsEnd) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{100}, (std::size_t{2} << 20) - 1,
        std::size_t{2} << 20, (std::size_t{2} << 20) + 1, std::size_t{9000001}}) {
    for (int round = 0; round < 2; ++round) {  // memory that was used before is zero again
      const auto block = cpu::allocate_zeroed(bytes);
      auto* const at = static_cast<unsigned char*>(block.get());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0u);
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(at[i], 0) << bytes << " at " << i;
      std::memset(at, 0xff, bytes);
    }
  }
  EXPECT_ANY_THROW(cpu::allocate_zeroed(std::numeric_limits<std::size_t>::max() - 4096));
  EXPECT_ANY_THROW(cpu::allocate_zeroed(std::numeric_limits<std::size_t>::max() / 4));
}

TEST(Copy, CopiesEveryByte) {
  for (const std::size_t bytes : {1, 63, 64, 4095, 4097, (1 << 20) + 1, 3 * (1 << 20) + 777}) {
    std::vector<std::byte> from(bytes), to(bytes);
    // Mostly zeros: single bytes at the ends and here and there, so that pieces are skipped and
    // pieces with one byte are not.
    for (std::size_t i = 0; i < bytes; i += 9001) from[i] = std::byte{1};
    from[bytes - 1] = std::byte{0x80};
    cpu::copy_to_zeros(to.data(), from.data(), bytes);
    EXPECT_EQ(to, from) << bytes;
    std::vector<std::byte> over(bytes, std::byte{0xff});
    cpu::copy_bytes(over.data(), from.data(), bytes);
    EXPECT_EQ(over, from) << bytes;
  }
}

}  // namespace
}  // namespace aloft

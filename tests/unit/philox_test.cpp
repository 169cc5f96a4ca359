#include "scalar/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace aloft::scalar {
namespace {

// The known-answer vectors that the authors publish with Random123 (philox4x32, 10 rounds).
static_assert(philox4x32({0, 0, 0, 0}, {0, 0}) ==
              Uint32x4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
              Uint32x4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                         {0xa4093822, 0x299f31d0}) ==
              Uint32x4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
static_assert(uniform_of_bits(0) == 0.0f && uniform_of_bits(~0u) < 1.0f);

TEST(Philox, EveryPartOfTheKeyMatters) {
  const RandomKey base{1, 2, 3, 4};
  std::set<Uint32x4> seen;
  for (const RandomKey& key :
       {base, RandomKey{2, 2, 3, 4}, RandomKey{1, 3, 3, 4}, RandomKey{1, 2, 4, 4},
        RandomKey{1, 2, 3, 5}, RandomKey{1, 2 + (1ull << 40), 3, 4}, RandomKey{4, 2, 3, 1}})
    for (std::uint64_t block : {0ull, 1ull, 1ull << 33}) seen.insert(random_block(key, block));
  EXPECT_EQ(seen.size(), 21u);
}

TEST(Philox, StreamsStayWhatTheyAre) {  // checkpoints and recorded runs depend on these bits
  EXPECT_EQ(random_block({}, 0), (Uint32x4{0xd7537fc8, 0x4787ca68, 0x473ddb06, 0xc80480ec}));
  EXPECT_EQ(random_block({1, 2, 3, 4}, 5),
            (Uint32x4{0xdc89855a, 0xa2cb77c5, 0x515bb845, 0x0e723aa8}));
}

TEST(Philox, UniformMomentsAndBuckets) {
  const int n = 1 << 20;
  double sum = 0, square = 0;
  int buckets[16] = {};
  for (int i = 0; i < n; ++i) {
    const double u = uniform({.seed = 11}, static_cast<std::uint64_t>(i));
    sum += u;
    square += u * u;
    ++buckets[static_cast<int>(u * 16)];
  }
  // Five deviations of the mean of n numbers.
  EXPECT_NEAR(sum / n, 0.5, 5 * 0.2887 / 1024);
  EXPECT_NEAR(square / n, 1.0 / 3, 5 * 0.2981 / 1024);
  double chi = 0;
  for (int b : buckets) chi += (b - n / 16.0) * (b - n / 16.0) / (n / 16.0);
  EXPECT_LT(chi, 50.0);  // 15 degrees of freedom: p is about 1e-5
}

TEST(Philox, NormalMomentsAndPairsAreUncorrelated) {
  const int n = 1 << 18;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, lag = 0, before = 0;
  for (int i = 0; i < n; ++i) {
    const double x = normal({.seed = 5, .step = 1}, static_cast<std::uint64_t>(i));
    m1 += x, m2 += x * x, m3 += x * x * x, m4 += x * x * x * x;
    lag += x * before;
    before = x;
  }
  // The same for the moments.
  EXPECT_NEAR(m1 / n, 0.0, 5.0 / 512);
  EXPECT_NEAR(m2 / n, 1.0, 5.0 * 1.414 / 512);
  EXPECT_NEAR(m3 / n, 0.0, 5.0 * 3.873 / 512);
  EXPECT_NEAR(m4 / n, 3.0, 5.0 * 9.798 / 512);
  EXPECT_NEAR(lag / n, 0.0, 5.0 / 512);
  EXPECT_LT(std::abs(normal_pair_of_bits(0, 0)[0]), 6.67);
  EXPECT_EQ(normal_pair_of_bits(~0u, 0)[0], 0.0);
}

}  // namespace
}  // namespace aloft::scalar

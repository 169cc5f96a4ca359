// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). A number depends on its key and its element index alone,
// so threads, shards, recomputation and resume draw the same numbers whatever their order.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace aloft::scalar {

using Uint32x4 = std::array<std::uint32_t, 4>;
using Uint32x2 = std::array<std::uint32_t, 2>;

// The published function: 128-bit counter, 64-bit key, ten rounds.
constexpr Uint32x4 philox4x32(Uint32x4 c, Uint32x2 k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    k[0] += 0x9E3779B9u;  // golden ratio and sqrt(3) - 1, the paper's Weyl constants
    k[1] += 0xBB67AE85u;
  }
  return c;
}

// What a random draw is keyed by. `step` counts attempts, `micro` is the micro-batch in it,
// `identity` is the node's (its module path, op and occurrence, hashed).
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint64_t micro = 0;
  std::uint64_t identity = 0;
};

// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection that mixes all 64 bits.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// Four words for block `block` of the key's stream; element e uses word e % 4 of block e / 4.
// Key words: seed and identity, mixed (for one seed, different identities never share a key).
// Counter: the block, then step * 2^20 + micro (never shared below 2^20 micro-batches).
constexpr Uint32x4 random_block(const RandomKey& key, std::uint64_t block) {
  const std::uint64_t k = mix64(mix64(key.seed + 0x9e3779b97f4a7c15u) + key.identity);
  const std::uint64_t when = (key.step << 20) + key.micro;
  return philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                     static_cast<std::uint32_t>(when), static_cast<std::uint32_t>(when >> 32)},
                    {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32)});
}

constexpr std::uint32_t random_bits(const RandomKey& key, std::uint64_t element) {
  return random_block(key, element >> 2)[element & 3];
}

// [0, 1) in steps of 2^-24: every value is an exact float and 1 never comes out.
constexpr float uniform_of_bits(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

constexpr float uniform(const RandomKey& key, std::uint64_t element) {
  return uniform_of_bits(random_bits(key, element));
}

// A pair of standard normal numbers from two words (Box and Muller 1958), in double. The first word
// gives the radius from (0, 1], so the largest magnitude is sqrt(64 ln 2), about 6.66.
inline std::array<double, 2> normal_pair_of_bits(std::uint32_t radius, std::uint32_t angle) {
  const double r = std::sqrt(-2.0 * std::log((radius + 1.0) * 0x1p-32));
  const double a = 2.0 * std::numbers::pi * (angle * 0x1p-32);
  return {r * std::cos(a), r * std::sin(a)};
}

// Elements 2i and 2i + 1 are the two halves of one pair.
inline double normal(const RandomKey& key, std::uint64_t element) {
  const Uint32x4 w = random_block(key, element >> 2);
  const std::size_t pair = element & 2;
  return normal_pair_of_bits(w[pair], w[pair + 1])[element & 1];
}

}  // namespace aloft::scalar

// Seeds that stand for others: the inverse of how philox.h makes a stream's key.
#pragma once

#include <cstdint>

#include "scalar/philox.h"

namespace aloft::scalar {

// Multiplied with an odd `x`, 1 (Newton: each round doubles the bits that are right).
constexpr std::uint64_t inverse_of(std::uint64_t x) {
  std::uint64_t y = x;
  for (int round = 0; round < 5; ++round) y *= 2 - x * y;
  return y;
}

// unmix64(mix64(x)) == x.
constexpr std::uint64_t unmix64(std::uint64_t x) {
  x = (x ^ x >> 31 ^ x >> 62) * inverse_of(0x94d049bb133111ebu);
  x = (x ^ x >> 27 ^ x >> 54) * inverse_of(0xbf58476d1ce4e5b9u);
  return x ^ x >> 30 ^ x >> 60;
}

// The seed with which `identity` draws what `seed` draws with `other`.
constexpr std::uint64_t seed_as(std::uint64_t seed, std::uint64_t other, std::uint64_t identity) {
  constexpr std::uint64_t kOffset = 0x9e3779b97f4a7c15u;  // random_block()'s
  return unmix64(mix64(seed + kOffset) + other - identity) - kOffset;
}

}  // namespace aloft::scalar

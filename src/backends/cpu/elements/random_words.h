// Counter-based random words, many at a time (scalar/philox.h has the definition).
#pragma once

#include <cstdint>

#include "scalar/philox.h"

namespace aloft::cpu {

// words[i] = random_bits(key, first + i) for i in [0, n). first is a multiple of 4; `words` has
// room for n rounded up to a multiple of 64.
void random_words(const scalar::RandomKey& key, std::uint64_t first, std::int64_t n,
                  std::uint32_t* words);

// The key of a call: its random state i64[3] and its identity.
inline scalar::RandomKey random_key(const void* rng, std::int64_t identity) {
  const auto* s = static_cast<const std::int64_t*>(rng);
  return {static_cast<std::uint64_t>(s[0]), static_cast<std::uint64_t>(s[1]),
          static_cast<std::uint64_t>(s[2]), static_cast<std::uint64_t>(identity)};
}

}  // namespace aloft::cpu

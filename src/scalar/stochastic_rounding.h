// Rounding to bf16 up or down at random, each as probable as the value is near (Gupta et al. 2015,
// "Deep learning with limited numerical precision"): right in the mean, so that steps below half a
// bf16 step add up, where rounding to nearest drops them all. Which way follows from a key and the
// element's index alone, like everything that is random (philox.h).
#pragma once

#include <bit>
#include <cstdint>

#include "scalar/float_formats.h"
#include "scalar/philox.h"

namespace aloft::scalar {

// What is rounded of one element in one step draws 16 bits each, numbered by slots: states from 0
// on, the parameter last. Slots 2k and 2k + 1 share the words of the stream `identity + k`.
inline constexpr int kParameterSlot = 8;
constexpr std::uint64_t rounding_stream(std::uint64_t identity, int slot) {
  return identity + static_cast<std::uint64_t>(slot / 2);
}
constexpr std::uint16_t rounding_bits_of(std::uint32_t word, int slot) {
  return static_cast<std::uint16_t>(slot % 2 == 0 ? word : word >> 16);
}
// `key.identity` is the tensor's.
constexpr std::uint16_t rounding_bits(RandomKey key, int slot, std::uint64_t element) {
  key.identity = rounding_stream(key.identity, slot);
  return rounding_bits_of(random_bits(key, element), slot);
}

// A bf16 value stays what it is, and infinity; a NaN as bf16_of() has it.
constexpr Bf16 bf16_at_random(float x, std::uint16_t bits) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return bf16_of(x);
  return {static_cast<std::uint16_t>((u + bits) >> 16)};
}

}  // namespace aloft::scalar

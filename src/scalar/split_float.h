// An f32 in two parts: the bf16 that it rounds to, and what tells it apart from the others that
// round there. So a bf16 weight and its remainder are an fp32 master without the weight's bits
// being kept twice, and the weight is still the master rounded to nearest even.
//
//   value bits = near << 16, plus the remainder's 16 bits as a signed number
//
// 65,537 floats round to an even bf16, one more than 16 bits can count: the midpoints on both sides
// round to even. Both have the remainder -32768; one more bit, `below`, tells the one that lies
// towards the larger magnitude, which rounded down. It is 0 for everything else.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "scalar/float_formats.h"

namespace aloft::scalar {

struct SplitFloat {
  Bf16 near;
  std::uint16_t rest;
  bool below;  // near < the value, and they are half a bf16 step apart
};

inline constexpr std::uint16_t kTieRest = 0x8000;

// A NaN has no remainder: it stays a quiet NaN with its sign and leading payload.
constexpr SplitFloat split(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const Bf16 near = bf16_of(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {near, 0, false};
  const auto rest = static_cast<std::uint16_t>(u);
  return {near, rest, rest == kTieRest && near.bits == u >> 16};
}

constexpr float join(const SplitFloat& s) {
  const auto rest = static_cast<std::int16_t>(s.rest);
  const std::uint32_t bits = (std::uint32_t{s.near.bits} << 16) + static_cast<std::uint32_t>(rest);
  return std::bit_cast<float>(s.below ? bits + 0x10000u : bits);
}

// The remainders of n values as bytes: n 16-bit words, then n bits, the first of each byte lowest,
// filled up with zeros.
constexpr std::int64_t rest_bytes(std::int64_t n) { return 2 * n + (n + 7) / 8; }

// Remainders in memory.
template <class Word, class Byte>
struct RestsIn {
  Word* words = nullptr;
  Byte* bits = nullptr;
  RestsIn(Word* w, Byte* b) : words(w), bits(b) {}
  // In memory that holds those of `n` values.
  RestsIn(Byte* memory, std::int64_t n)
      : words(reinterpret_cast<Word*>(memory)), bits(memory + 2 * n) {}
};
using Rests = RestsIn<std::uint16_t, std::uint8_t>;
using ConstRests = RestsIn<const std::uint16_t, const std::uint8_t>;

template <class R>
float joined(const R& rests, Bf16 near, std::int64_t i) {
  return join({near, rests.words[i], (rests.bits[i / 8] >> (i % 8) & 1) != 0});
}

// Two threads may not write values of one byte of bits.
inline Bf16 put_split(const Rests& rests, std::int64_t i, float x) {
  const SplitFloat s = split(x);
  rests.words[i] = s.rest;
  const auto bit = static_cast<std::uint8_t>(1u << (i % 8));
  std::uint8_t& byte = rests.bits[i / 8];
  byte = static_cast<std::uint8_t>(s.below ? byte | bit : byte & ~bit);
  return s.near;
}

}  // namespace aloft::scalar

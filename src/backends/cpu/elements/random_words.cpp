#include "backends/cpu/elements/random_words.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elements/random_words.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
void words_of(const scalar::RandomKey& key, std::uint64_t block, std::int64_t blocks,
              std::uint32_t* words) {
  for (std::int64_t b = 0; b < blocks; ++b)
    for (int w = 0; w < 4; ++w) words[4 * b + w] = scalar::random_block(key, block + b)[w];
}
#else
using Words = hn::ScalableTag<std::uint32_t>;
using Blocks = hn::Repartition<std::uint64_t, Words>;
using WordV = hn::Vec<Words>;

// A block a lane of 64 bits, each word of it in the lower half of its own vector; what lies in the
// upper halves is never looked at, because products read the lower ones alone.
struct Counters {
  WordV w0, w1, w2, w3;
};

HWY_INLINE WordV upper_half(hn::Vec<Blocks> product) {
  return hn::Shuffle2301(hn::BitCast(Words(), product));
}

HWY_INLINE void turn(Counters& c, WordV k0, WordV k1) {
  const Words d;
  const auto a = hn::MulEven(c.w0, hn::Set(d, 0xD2511F53u));
  const auto b = hn::MulEven(c.w2, hn::Set(d, 0xCD9E8D57u));
  c.w0 = hn::Xor3(upper_half(b), c.w1, k0);
  c.w1 = hn::BitCast(d, b);
  c.w2 = hn::Xor3(upper_half(a), c.w3, k1);
  c.w3 = hn::BitCast(d, a);
}

HWY_INLINE void put(const Counters& c, std::uint32_t* words) {
  const Blocks d;
  const auto first = hn::OddEven(hn::Shuffle2301(c.w1), c.w0);
  const auto second = hn::OddEven(hn::Shuffle2301(c.w3), c.w2);
  hn::StoreInterleaved2(hn::BitCast(d, first), hn::BitCast(d, second), d,
                        reinterpret_cast<std::uint64_t*>(words));
}

// How many vectors of blocks are turned together: they hide each other's latency, as far as the
// processor has registers.
constexpr std::int64_t kTogether = HWY_MAX_BYTES == 64 ? 4 : 3;

// Blocks [block, block + blocks).
void words_of(const scalar::RandomKey& key, std::uint64_t block, std::int64_t blocks,
              std::uint32_t* words) {
  const Words d;
  const Blocks d64;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d64));
  const std::uint64_t k =
      scalar::mix64(scalar::mix64(key.seed + 0x9e3779b97f4a7c15u) + key.identity);
  const std::uint64_t when = (key.step << 20) + key.micro;
  // Whole vectors, which instructions take from memory.
  constexpr int kRounds = 10;
  HWY_ALIGN std::uint32_t k0[kRounds][HWY_MAX_BYTES / 4], k1[kRounds][HWY_MAX_BYTES / 4];
  for (int round = 0; round < kRounds; ++round) {
    const auto r = static_cast<std::uint32_t>(round);
    hn::Store(hn::Set(d, static_cast<std::uint32_t>(k) + r * 0x9E3779B9u), d, k0[round]);
    hn::Store(hn::Set(d, static_cast<std::uint32_t>(k >> 32) + r * 0xBB67AE85u), d, k1[round]);
  }
  const WordV when_low = hn::Set(d, static_cast<std::uint32_t>(when));
  const WordV when_high = hn::Set(d, static_cast<std::uint32_t>(when >> 32));
  // Made once: it goes through memory.
  const auto first = hn::Iota(d64, block);
  const auto start = [&](std::int64_t b) HWY_ATTR {
    const auto at = hn::Add(first, hn::Set(d64, static_cast<std::uint64_t>(b)));
    return Counters{hn::BitCast(d, at), hn::BitCast(d, hn::ShiftRight<32>(at)), when_low,
                    when_high};
  };
  std::int64_t b = 0;
  for (; b + (kTogether - 1) * lanes < blocks; b += kTogether * lanes) {
    Counters c[kTogether];
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < kTogether; ++i) c[i] = start(b + i * lanes);
    for (int round = 0; round < kRounds; ++round) {
      const WordV r0 = hn::Load(d, k0[round]), r1 = hn::Load(d, k1[round]);
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < kTogether; ++i) turn(c[i], r0, r1);
    }
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < kTogether; ++i) put(c[i], words + 4 * (b + i * lanes));
  }
  for (; b < blocks; b += lanes) {
    Counters last = start(b);
    for (int round = 0; round < kRounds; ++round)
      turn(last, hn::Load(d, k0[round]), hn::Load(d, k1[round]));
    put(last, words + 4 * b);
  }
}
#endif

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(words_of);

void random_words(const scalar::RandomKey& key, std::uint64_t first, std::int64_t n,
                  std::uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(words_of)(key, first / 4, (n + 3) / 4, words);
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE

#include "backends/cpu/random_words.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/random_words.cpp"
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
using WordV = hn::Vec<Words>;

// The 64-bit products of a's lanes and m, as high and low halves.
HWY_INLINE void multiply(WordV a, std::uint32_t m, WordV& high, WordV& low) {
  const Words d;
  const hn::Repartition<std::uint64_t, Words> d64;
  const WordV factor = hn::Set(d, m);
  const auto even = hn::MulEven(a, factor);
  const WordV odds = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a)));
  const auto odd = hn::MulEven(odds, factor);
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}

// Blocks [block, block + blocks): lane i of each vector works on block + i.
void words_of(const scalar::RandomKey& key, std::uint64_t block, std::int64_t blocks,
              std::uint32_t* words) {
  const Words d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::uint64_t k =
      scalar::mix64(scalar::mix64(key.seed + 0x9e3779b97f4a7c15u) + key.identity);
  const std::uint64_t when = (key.step << 20) + key.micro;
  for (std::int64_t b = 0; b < blocks; b += lanes) {
    const std::uint64_t at = block + static_cast<std::uint64_t>(b);
    // A carry into the high word within one vector needs 2^32 blocks before it: lane by lane then.
    if ((at & 0xffffffffu) + static_cast<std::uint64_t>(lanes) > 0xffffffffu) {
      for (std::int64_t i = 0; i < lanes; ++i)
        for (int w = 0; w < 4; ++w)
          words[4 * (b + i) + w] = scalar::random_block(key, at + static_cast<std::uint64_t>(i))[w];
      continue;
    }
    WordV c0 = hn::Iota(d, static_cast<std::uint32_t>(at));
    WordV c1 = hn::Set(d, static_cast<std::uint32_t>(at >> 32));
    WordV c2 = hn::Set(d, static_cast<std::uint32_t>(when));
    WordV c3 = hn::Set(d, static_cast<std::uint32_t>(when >> 32));
    std::uint32_t k0 = static_cast<std::uint32_t>(k), k1 = static_cast<std::uint32_t>(k >> 32);
    for (int round = 0; round < 10; ++round) {
      WordV high_a, low_a, high_b, low_b;
      multiply(c0, 0xD2511F53u, high_a, low_a);
      multiply(c2, 0xCD9E8D57u, high_b, low_b);
      c0 = hn::Xor(hn::Xor(high_b, c1), hn::Set(d, k0));
      c1 = low_b;
      c2 = hn::Xor(hn::Xor(high_a, c3), hn::Set(d, k1));
      c3 = low_a;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, d, words + 4 * b);
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

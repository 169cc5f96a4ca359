// How many of many floats are zero, subnormal, of the largest magnitude, infinite or NaN: counted
// where their extremes (extremes-inl.h) say that there may be any. Include from a file that Highway
// compiles once a target, after highway.h.
#if defined(ALOFT_CPU_RARE_COUNTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_RARE_COUNTS_INL
#undef ALOFT_CPU_RARE_COUNTS_INL
#else
#define ALOFT_CPU_RARE_COUNTS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "backends/cpu/update/piece_statistics.h"
#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// Bits of magnitudes at which counts begin.
template <class Word>
struct EdgeBits {
  Word least_normal, largest, infinity;
};

// Adds the counts of n floats, whole vectors of them: bits_at(i) are the bits of the vector at i,
// as signed integers of `d`.
template <class I, class BitsAt>
void count_small(I d, const BitsAt& bits_at, std::int64_t n, EdgeBits<hn::TFromD<I>> edges,
                 PieceStatistics& s) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto size_mask = hn::Set(d, std::numeric_limits<hn::TFromD<I>>::max());
  std::int64_t zeros = 0, small = 0;
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto size = hn::And(bits_at(i), size_mask);
    zeros += static_cast<std::int64_t>(hn::CountTrue(d, hn::Eq(size, hn::Zero(d))));
    small +=
        static_cast<std::int64_t>(hn::CountTrue(d, hn::Lt(size, hn::Set(d, edges.least_normal))));
  }
  s.zeros += zeros;
  s.underflowed += small - zeros;
}
template <class I, class BitsAt>
void count_large(I d, const BitsAt& bits_at, std::int64_t n, EdgeBits<hn::TFromD<I>> edges,
                 PieceStatistics& s) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto size_mask = hn::Set(d, std::numeric_limits<hn::TFromD<I>>::max());
  const auto infinity = hn::Set(d, edges.infinity);
  std::int64_t infinite = 0, positive = 0;
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto bits = bits_at(i), size = hn::And(bits, size_mask);
    s.saturated +=
        static_cast<std::int64_t>(hn::CountTrue(d, hn::Eq(size, hn::Set(d, edges.largest))));
    s.nan += static_cast<std::int64_t>(hn::CountTrue(d, hn::Gt(size, infinity)));
    infinite += static_cast<std::int64_t>(hn::CountTrue(d, hn::Eq(size, infinity)));
    positive += static_cast<std::int64_t>(hn::CountTrue(d, hn::Eq(bits, infinity)));
  }
  s.positive_inf += positive;
  s.negative_inf += infinite - positive;
}

// Adds what is rare among floats with these extremes: where they are ordinary there is none of it,
// and nothing is counted float by float.
template <class I, class Met, class BitsAt>
HWY_INLINE void count_rare(I d, const Met& met, const BitsAt& bits_at, std::int64_t n,
                           EdgeBits<hn::TFromD<I>> edges, PieceStatistics& s) {
  if (!hn::AllFalse(d, hn::Lt(met.smallest(), hn::Set(d, edges.least_normal))))
    count_small(d, bits_at, n, edges, s);
  if (!hn::AllTrue(d, hn::Lt(met.largest(), hn::Set(d, edges.largest))))
    count_large(d, bits_at, n, edges, s);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

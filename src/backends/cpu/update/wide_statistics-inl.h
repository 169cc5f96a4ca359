// Statistics of floats that are summed in double, each in lane i % kSumLanes of the sums. Include
// from a file that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_WIDE_STATISTICS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_WIDE_STATISTICS_INL
#undef ALOFT_CPU_WIDE_STATISTICS_INL
#else
#define ALOFT_CPU_WIDE_STATISTICS_INL
#endif

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cpu/update/extremes-inl.h"
#include "backends/cpu/update/piece_statistics.h"
#include "backends/cpu/update/rare_counts-inl.h"
#include "backends/cpu/update/squares-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

static_assert(kSumLanes == StatisticsInLanes::kLanes);

// Elements are read from a source: load(d, i) is the vector at i, at(i) the element.
template <class T>
struct InMemory {
  const T* p;
  HWY_INLINE FloatV load(Floats d, std::int64_t i) const { return HWY_NAMESPACE::load(d, p + i); }
  double at(std::int64_t i) const { return scalar::f64_of(p[i]); }
};

// Elements [from, n).
template <class Source>
void add_elements(const Source& source, std::int64_t from, std::int64_t n, const FloatEdges& edges,
                  StatisticsInLanes& to) {
  for (std::int64_t i = from; i < n; ++i) {
    const double x = source.at(i);
    to.sums[i % kSumLanes] += x;
    to.squares[i % kSumLanes] += x * x;
    to.others.meet(x, edges);
  }
}

// Elements [from, n), whole rows of kSumLanes, the first of which `from` begins.
#if HWY_TARGET == HWY_SCALAR
template <class Source>
void add_rows(const Source& source, std::int64_t from, std::int64_t n, const FloatEdges& edges,
              StatisticsInLanes& to) {
  add_elements(source, from, n, edges, to);
}
#else
template <class Source>
void add_rows(const Source& source, std::int64_t from, std::int64_t n, const FloatEdges& edges,
              StatisticsInLanes& to) {
  const Floats d;
  using Bits = hn::RebindToUnsigned<Floats>;
  const hn::RebindToSigned<Floats> integers;
  const hn::Half<Floats> half;
  const hn::Repartition<double, Floats> d64;
  using Doubles = hn::Vec<decltype(d64)>;
  constexpr std::int64_t kLanes = HWY_MAX_BYTES / sizeof(float);
  constexpr std::int64_t kVectors = kSumLanes / kLanes;
  constexpr std::int64_t kBlock = 1024;  // stays in the first cache to be looked at again
  static_assert(kVectors >= 1 && kSumLanes % kLanes == 0 && kBlock % kSumLanes == 0);
  const auto bits_of = [](double x) {
    return static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(static_cast<float>(x)));
  };
  const EdgeBits<std::int32_t> edge_bits{bits_of(edges.least_normal), bits_of(edges.largest),
                                         0x7f800000};
  Doubles low[kVectors], high[kVectors], low2[kVectors], high2[kVectors];
  // Unrolled throughout: else the compiler would keep the sums in memory.
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    low[v] = hn::Load(d64, to.sums + v * kLanes);
    high[v] = hn::Load(d64, to.sums + v * kLanes + kLanes / 2);
    low2[v] = hn::Load(d64, to.squares + v * kLanes);
    high2[v] = hn::Load(d64, to.squares + v * kLanes + kLanes / 2);
  }
  Extremes<Bits> all;
  for (std::int64_t begin = from; begin < n; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, n);
    Extremes<Bits> met;
    for (std::int64_t i = begin; i < end; i += kSumLanes) {
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const FloatV x = source.load(d, i + v * kLanes);
        met.meet(hn::BitCast(Bits(), x));
        const Doubles lower = hn::PromoteTo(d64, hn::LowerHalf(half, x));
        const Doubles upper = hn::PromoteTo(d64, hn::UpperHalf(half, x));
        low[v] = hn::Add(low[v], lower);
        high[v] = hn::Add(high[v], upper);
        low2[v] = hn::MulAdd(lower, lower, low2[v]);
        high2[v] = hn::MulAdd(upper, upper, high2[v]);
      }
    }
    all.meet(met);
    count_rare(
        integers, met,
        [&](std::int64_t i) HWY_ATTR { return hn::BitCast(integers, source.load(d, begin + i)); },
        end - begin, edge_bits, to.others);
  }
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    hn::Store(low[v], d64, to.sums + v * kLanes);
    hn::Store(high[v], d64, to.sums + v * kLanes + kLanes / 2);
    hn::Store(low2[v], d64, to.squares + v * kLanes);
    hn::Store(high2[v], d64, to.squares + v * kLanes + kLanes / 2);
  }
  to.others.extend(hn::GetLane(hn::MinOfLanes(d, hn::BitCast(d, all.min()))),
                   hn::GetLane(hn::MaxOfLanes(d, hn::BitCast(d, all.max()))));
}
#endif

// Elements [from, n), the first of a row.
template <class Source>
void add_wide(const Source& source, std::int64_t from, std::int64_t n, const FloatEdges& edges,
              StatisticsInLanes& to) {
  const std::int64_t rows = n - n % kSumLanes;
  if (rows > from) add_rows(source, from, rows, edges, to);
  add_elements(source, rows, n, edges, to);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

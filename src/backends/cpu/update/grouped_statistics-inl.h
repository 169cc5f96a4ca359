// Statistics of floats of which 16 at a time are summed in f32 before they are widened, a block of
// them at a time. A block whose squares f32 does not hold is summed in double. Include from a file
// that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_GROUPED_STATISTICS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_GROUPED_STATISTICS_INL
#undef ALOFT_CPU_GROUPED_STATISTICS_INL
#else
#define ALOFT_CPU_GROUPED_STATISTICS_INL
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/update/wide_statistics-inl.h"
#include "scalar/float_formats.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// A group of 8 rows of 32 elements has 16 sums in f32, each of two elements of every row: those of
// the first, from row to row, then those of the second, then both together.
constexpr std::int64_t kRows = 8;
constexpr std::int64_t kGroup = kRows * kSumLanes;
constexpr std::int64_t kGroupSums = kSumLanes / 2;
constexpr std::int64_t kGroupedBlock = 2048;  // stays in the first cache to be looked at again
static_assert(kGroupedBlock % kGroup == 0);

// f32 holds the squares of a block, and sums of 16 of them, whose largest magnitude is this or more
// and less than that, or 0. What squares of much smaller elements lose below f32's normal numbers
// is nothing beside that one's.
constexpr float kNear = 0x1p-50f, kFar = 0x1p60f;

// How the elements of a source are read: as f32.
template <class Source>
struct Grouping;

#if HWY_NATIVE_FMA
constexpr std::int64_t kSumWidth = HWY_MAX_BYTES / sizeof(float);
constexpr std::int64_t kSumVectors = kGroupSums / kSumWidth;
static_assert(kSumVectors >= 1 && kGroupSums % kSumWidth == 0);

struct TwoFloats {
  FloatV first, second;
};

// Their bits are met as integers as wide as the source's type.
template <class Source>
struct Grouping {
  using Words = hn::RebindToUnsigned<Floats>;
  static constexpr EdgeBits<std::int32_t> kEdges{0x00800000, 0x7f7fffff, 0x7f800000};
  static constexpr auto kNearBits = std::bit_cast<std::int32_t>(kNear);
  static constexpr auto kFarBits = std::bit_cast<std::int32_t>(kFar);
  static float value(std::uint32_t bits) { return std::bit_cast<float>(bits); }

  static HWY_INLINE hn::Vec<Words> bits(const Source& source, std::int64_t i) {
    return hn::BitCast(Words(), source.load(Floats(), i));
  }
  // Elements of the row at i for vector v of the sums.
  static HWY_INLINE TwoFloats meet(const Source& source, std::int64_t i, std::int64_t v,
                                   Extremes<Words>& met) {
    const Floats d;
    const TwoFloats x{source.load(d, i + v * kSumWidth),
                      source.load(d, i + kGroupSums + v * kSumWidth)};
    met.meet(hn::BitCast(Words(), x.first));
    met.meet(hn::BitCast(Words(), x.second));
    return x;
  }
};

template <class T>
struct LowGrouping {
  using Words = hn::Repartition<std::uint16_t, Floats>;
  static float value(std::uint16_t bits) { return scalar::f32_of(T{bits}); }
  static HWY_INLINE hn::Vec<Words> bits(const InMemory<T>& source, std::int64_t i) {
    return hn::LoadU(Words(), reinterpret_cast<const std::uint16_t*>(source.p + i));
  }
  // One stream alone does not keep the hardware's prefetchers far enough ahead.
  static HWY_INLINE void fetch_ahead(const InMemory<T>& source, std::int64_t i) {
    constexpr std::int64_t kAhead = 12288 / sizeof(T);
    __builtin_prefetch(source.p + i + kAhead, 0, 2);
  }
};

// Neighbours are the halves of a 32-bit lane.
template <>
struct Grouping<InMemory<scalar::Bf16>> : LowGrouping<scalar::Bf16> {
  static constexpr EdgeBits<std::int16_t> kEdges{0x0080, 0x7f7f, 0x7f80};
  static constexpr std::int16_t kNearBits = scalar::bf16_of(kNear).bits;
  static constexpr std::int16_t kFarBits = scalar::bf16_of(kFar).bits;
  static HWY_INLINE TwoFloats meet(const InMemory<scalar::Bf16>& source, std::int64_t i,
                                   std::int64_t v, Extremes<Words>& met) {
    const Floats d;
    const hn::RebindToUnsigned<Floats> d32;
    if (v == 0) fetch_ahead(source, i);
    const auto both = bits(source, i + v * 2 * kSumWidth);
    met.meet(both);
    const auto pairs = hn::BitCast(d32, both);
    return {hn::BitCast(d, hn::ShiftLeft<16>(pairs)),
            hn::BitCast(d, hn::And(pairs, hn::Set(d32, 0xffff0000u)))};
  }
};
template <>
struct Grouping<InMemory<scalar::F16>> : LowGrouping<scalar::F16> {
  static constexpr EdgeBits<std::int16_t> kEdges{0x0400, 0x7bff, 0x7c00};
  static constexpr std::int16_t kNearBits = 1, kFarBits = kEdges.infinity;
  static HWY_INLINE TwoFloats meet(const InMemory<scalar::F16>& source, std::int64_t i,
                                   std::int64_t v, Extremes<Words>& met) {
    const Floats d;
    if (v == 0) fetch_ahead(source, i);
    met.meet(bits(source, i + v * 2 * kSumWidth));
    return {source.load(d, i + v * kSumWidth), source.load(d, i + kGroupSums + v * kSumWidth)};
  }
};

// Sums in double while a block is added.
struct BlockSums {
  using D = hn::Repartition<double, Floats>;
  using V = hn::Vec<D>;

  HWY_INLINE BlockSums() {
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < kSumVectors; ++v) low[v] = high[v] = hn::Zero(D());
  }
  HWY_INLINE void add(FloatV x, std::int64_t v) {
    const hn::Half<Floats> half;
    low[v] = hn::Add(low[v], hn::PromoteTo(D(), hn::LowerHalf(half, x)));
    high[v] = hn::Add(high[v], hn::PromoteTo(D(), hn::UpperHalf(half, x)));
  }
  HWY_INLINE void add_to(double* lanes) const {
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < kSumVectors; ++v) {
      double *at = lanes + v * kSumWidth, *behind = at + kSumWidth / 2;
      hn::Store(hn::Add(hn::Load(D(), at), low[v]), D(), at);
      hn::Store(hn::Add(hn::Load(D(), behind), high[v]), D(), behind);
    }
  }

  V low[kSumVectors], high[kSumVectors];
};

template <class Source, class G = Grouping<Source>>
HWY_INLINE void add_group(const Source& source, std::int64_t i, Extremes<typename G::Words>& met,
                          BlockSums& sums, BlockSums& squares) {
  FloatV first[kSumVectors], second[kSumVectors], first2[kSumVectors], second2[kSumVectors];
  // Unrolled throughout: else the compiler would keep the sums in memory.
#pragma GCC unroll 4
  for (std::int64_t v = 0; v < kSumVectors; ++v) {
    const TwoFloats x = G::meet(source, i, v, met);
    first[v] = x.first, second[v] = x.second;
    first2[v] = hn::Mul(x.first, x.first), second2[v] = hn::Mul(x.second, x.second);
  }
#pragma GCC unroll 8
  for (std::int64_t r = 1; r < kRows; ++r) {
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < kSumVectors; ++v) {
      const TwoFloats x = G::meet(source, i + r * kSumLanes, v, met);
      first[v] = hn::Add(first[v], x.first), second[v] = hn::Add(second[v], x.second);
      first2[v] = hn::MulAdd(x.first, x.first, first2[v]);
      second2[v] = hn::MulAdd(x.second, x.second, second2[v]);
    }
  }
#pragma GCC unroll 4
  for (std::int64_t v = 0; v < kSumVectors; ++v) {
    sums.add(hn::Add(first[v], second[v]), v);
    squares.add(hn::Add(first2[v], second2[v]), v);
  }
}

template <class G>
HWY_INLINE bool has_squares_in_f32(const Extremes<typename G::Words>& met) {
  const hn::RebindToSigned<typename G::Words> d;
  const auto largest = met.largest();
  if (!hn::AllTrue(d, hn::Lt(largest, hn::Set(d, G::kFarBits)))) return false;
  return !hn::AllTrue(d, hn::Lt(largest, hn::Set(d, G::kNearBits))) ||
         hn::AllTrue(d, hn::Eq(largest, hn::Zero(d)));
}

template <class G>
void extend(const Extremes<typename G::Words>& met, PieceStatistics& s) {
  const typename G::Words d;
  using Word = hn::TFromD<typename G::Words>;
  constexpr std::size_t kLanes = HWY_MAX_BYTES / sizeof(Word);
  HWY_ALIGN Word most[kLanes], least[kLanes];
  hn::Store(met.max(), d, most);
  hn::Store(met.min(), d, least);
  for (std::size_t l = 0; l < kLanes; ++l) s.extend(G::value(least[l]), G::value(most[l]));
}

// The first n elements, whole groups of them.
template <class Source>
void add_groups(const Source& source, std::int64_t n, const FloatEdges& edges,
                StatisticsInLanes& to) {
  using G = Grouping<Source>;
  const hn::RebindToSigned<typename G::Words> integers;
  Extremes<typename G::Words> all;
  for (std::int64_t from = 0; from < n; from += kGroupedBlock) {
    const std::int64_t end = std::min(from + kGroupedBlock, n);
    Extremes<typename G::Words> met;
    BlockSums sums, squares;
    for (std::int64_t i = from; i < end; i += kGroup) add_group(source, i, met, sums, squares);
    if (!has_squares_in_f32<G>(met)) {
      add_rows(source, from, end, edges, to);
      continue;
    }
    sums.add_to(to.sums);
    squares.add_to(to.squares);
    all.meet(met);
    count_rare(
        integers, met,
        [&source, from](std::int64_t i) HWY_ATTR {
          return hn::BitCast(hn::RebindToSigned<typename G::Words>(), G::bits(source, from + i));
        },
        end - from, G::kEdges, to.others);
  }
  extend<G>(all, to.others);
}
#else
// The elements of a row whose sum is number l.
template <class Source>
struct Grouping {
  static constexpr std::int64_t first(std::int64_t l) { return l; }
  static constexpr std::int64_t second(std::int64_t l) { return kGroupSums + l; }
};
template <>
struct Grouping<InMemory<scalar::Bf16>> {
  static constexpr std::int64_t first(std::int64_t l) { return 2 * l; }
  static constexpr std::int64_t second(std::int64_t l) { return 2 * l + 1; }
};

// What vectors do, to the bit, element by element.
template <class Source>
void add_groups(const Source& source, std::int64_t n, const FloatEdges& edges,
                StatisticsInLanes& to) {
  using G = Grouping<Source>;
  const auto at = [&](std::int64_t i) { return static_cast<float>(source.at(i)); };
  for (std::int64_t from = 0; from < n; from += kGroupedBlock) {
    const std::int64_t end = std::min(from + kGroupedBlock, n);
    float largest = 0;
    bool is_far = false;
    for (std::int64_t i = from; i < end; ++i) {
      const float size = std::abs(at(i));
      is_far |= !(size < kFar);
      largest = std::max(largest, size);
    }
    if (is_far || (largest > 0 && largest < kNear)) {
      add_rows(source, from, end, edges, to);
      continue;
    }
    double sums[kGroupSums] = {}, squares[kGroupSums] = {};
    for (std::int64_t group = from; group < end; group += kGroup)
      for (std::int64_t l = 0; l < kGroupSums; ++l) {
        float first = 0, second = 0, first2 = 0, second2 = 0;
        for (std::int64_t row = group; row < group + kGroup; row += kSumLanes) {
          const float x = at(row + G::first(l)), y = at(row + G::second(l));
          first += x, second += y;
          first2 = std::fma(x, x, first2), second2 = std::fma(y, y, second2);
        }
        sums[l] += static_cast<double>(first + second);
        squares[l] += static_cast<double>(first2 + second2);
      }
    for (std::int64_t l = 0; l < kGroupSums; ++l) {
      to.sums[l] += sums[l];
      to.squares[l] += squares[l];
    }
    for (std::int64_t i = from; i < end; ++i) to.others.meet(source.at(i), edges);
  }
}
#endif

// The first n elements.
template <class Source>
void add_grouped(const Source& source, std::int64_t n, const FloatEdges& edges,
                 StatisticsInLanes& to) {
  const std::int64_t groups = n - n % kGroup;
  add_groups(source, groups, edges, to);
  add_wide(source, groups, n, edges, to);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// What is rare is not counted element by element: a block whose smallest and largest magnitude are
// ordinary has none of it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/update/piece_statistics.cpp"
#include "backends/cpu/update/piece_statistics.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>

#include "backends/cpu/update/squares-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

inline double number(double x) { return x; }
template <class T>
double number(T x) {
  return static_cast<double>(scalar::f32_of(x));
}

// Element i goes to lane i % kSumLanes of the sums.
template <class T>
void add_one(const T* p, std::int64_t i, const FloatEdges& edges, PieceStatistics& s, double* sums,
             double* squares) {
  const double x = number(p[i]);
  sums[i % kSumLanes] += x;
  squares[i % kSumLanes] += x * x;
  if (x > s.max) s.max = x;
  if (x < s.min) s.min = x;
  s.count(x, edges);
}

template <class T>
void by_elements(const T* p, std::int64_t n, const FloatEdges& edges, PieceStatistics& s) {
  double sums[kSumLanes] = {}, squares[kSumLanes] = {};
  for (std::int64_t i = 0; i < n; ++i) add_one(p, i, edges, s, sums, squares);
  s.sum = sum_lanes(sums);
  s.squares = sum_lanes(squares);
}

#if HWY_TARGET == HWY_SCALAR
template <class T>
void by_vectors(const T* p, std::int64_t n, const FloatEdges& edges, PieceStatistics& s) {
  by_elements(p, n, edges, s);
}
#else
using Bits = hn::RebindToUnsigned<Floats>;
using BitsV = hn::Vec<Bits>;

HWY_INLINE BitsV magnitude(FloatV x) {
  return hn::And(hn::BitCast(Bits(), x), hn::Set(Bits(), 0x7fffffffu));
}

struct EdgeBits {
  std::uint32_t least_normal, largest;
};
constexpr std::uint32_t kInfBits = 0x7f800000u;

// Of whole vectors.
template <class T>
void count_rare(const T* p, std::int64_t n, EdgeBits edges, PieceStatistics& s) {
  const Floats d;
  const Bits b;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto many = [&](auto mask)
                        HWY_ATTR { return static_cast<std::int64_t>(hn::CountTrue(b, mask)); };
  for (std::int64_t i = 0; i < n; i += lanes) {
    const FloatV x = load(d, p + i);
    const BitsV all = hn::BitCast(b, x), size = magnitude(x);
    const auto is_inf = hn::Eq(size, hn::Set(b, kInfBits));
    const auto is_plus = hn::Eq(all, size);
    const auto is_zero = hn::Eq(size, hn::Zero(b));
    s.nan += many(hn::Gt(size, hn::Set(b, kInfBits)));
    s.positive_inf += many(hn::And(is_inf, is_plus));
    s.negative_inf += many(hn::AndNot(is_plus, is_inf));
    s.zeros += many(is_zero);
    s.underflowed += many(hn::AndNot(is_zero, hn::Lt(size, hn::Set(b, edges.least_normal))));
    s.saturated += many(hn::Eq(size, hn::Set(b, edges.largest)));
  }
}

template <class T>
void by_vectors(const T* p, std::int64_t n, const FloatEdges& edges, PieceStatistics& s) {
  const Floats d;
  const Bits b;
  const hn::Half<Floats> half;
  const hn::Repartition<double, Floats> d64;
  using Doubles = hn::Vec<decltype(d64)>;
  constexpr std::int64_t kLanes = HWY_MAX_BYTES / sizeof(float);
  constexpr std::int64_t kVectors = kSumLanes / kLanes;
  constexpr std::int64_t kBlock = 1024;  // stays in the first cache to be looked at again
  static_assert(kVectors >= 1 && kSumLanes % kLanes == 0 && kBlock % kSumLanes == 0);
  const EdgeBits bits{std::bit_cast<std::uint32_t>(static_cast<float>(edges.least_normal)),
                      std::bit_cast<std::uint32_t>(static_cast<float>(edges.largest))};
  Doubles low[kVectors], high[kVectors], low2[kVectors], high2[kVectors];
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) low[v] = high[v] = low2[v] = high2[v] = hn::Zero(d64);
  FloatV most = hn::Set(d, -std::numeric_limits<float>::infinity());
  FloatV least = hn::Set(d, std::numeric_limits<float>::infinity());
  const std::int64_t whole = n - n % kSumLanes;
  for (std::int64_t from = 0; from < whole; from += kBlock) {
    const std::int64_t to = from + kBlock < whole ? from + kBlock : whole;
    BitsV largest = hn::Zero(b), smallest = hn::Set(b, ~0u);
    for (std::int64_t i = from; i < to; i += kSumLanes) {
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const FloatV x = load(d, p + i + v * kLanes);
        const BitsV size = magnitude(x);
        largest = hn::Max(largest, size);
        smallest = hn::Min(smallest, size);
        most = hn::Max(x, most);
        least = hn::Min(x, least);
        const Doubles lower = hn::PromoteTo(d64, hn::LowerHalf(half, x));
        const Doubles upper = hn::PromoteTo(d64, hn::UpperHalf(half, x));
        low[v] = hn::Add(low[v], lower);
        high[v] = hn::Add(high[v], upper);
        low2[v] = hn::MulAdd(lower, lower, low2[v]);
        high2[v] = hn::MulAdd(upper, upper, high2[v]);
      }
    }
    const bool is_rare = hn::GetLane(hn::MaxOfLanes(b, largest)) >= bits.largest ||
                         hn::GetLane(hn::MinOfLanes(b, smallest)) < bits.least_normal;
    if (is_rare) count_rare(p + from, to - from, bits, s);
  }
  HWY_ALIGN double sums[kSumLanes], squares[kSumLanes];
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    hn::Store(low[v], d64, sums + v * kLanes);
    hn::Store(high[v], d64, sums + v * kLanes + kLanes / 2);
    hn::Store(low2[v], d64, squares + v * kLanes);
    hn::Store(high2[v], d64, squares + v * kLanes + kLanes / 2);
  }
  s.max = static_cast<double>(hn::GetLane(hn::MaxOfLanes(d, most)));
  s.min = static_cast<double>(hn::GetLane(hn::MinOfLanes(d, least)));
  for (std::int64_t i = whole; i < n; ++i) add_one(p, i, edges, s, sums, squares);
  s.sum = sum_lanes(sums);
  s.squares = sum_lanes(squares);
}
#endif

void statistics_of(DType type, const void* p, std::int64_t n, PieceStatistics& s) {
  const FloatEdges edges = edges_of(type);
  if (type == DType::F64) return by_elements(static_cast<const double*>(p), n, edges, s);
  if (type == DType::F32) return by_vectors(static_cast<const float*>(p), n, edges, s);
  if (type == DType::BF16) return by_vectors(static_cast<const scalar::Bf16*>(p), n, edges, s);
  return by_vectors(static_cast<const scalar::F16*>(p), n, edges, s);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace aloft::cpu {

HWY_EXPORT(statistics_of);

void add_statistics(DType type, const void* p, std::int64_t n, PieceStatistics& s) {
  PieceStatistics own;
  HWY_DYNAMIC_DISPATCH(statistics_of)(type, p, n, own);
  add(s, own);
}

void add(PieceStatistics& all, const PieceStatistics& piece) {
  all.sum += piece.sum;
  all.squares += piece.squares;
  all.max = std::max(all.max, piece.max);
  all.min = std::min(all.min, piece.min);
  all.nan += piece.nan;
  all.positive_inf += piece.positive_inf;
  all.negative_inf += piece.negative_inf;
  all.zeros += piece.zeros;
  all.underflowed += piece.underflowed;
  all.saturated += piece.saturated;
}

TensorStatistics numbers_of(const PieceStatistics& s, std::int64_t elements) {
  const bool has_range = elements > 0 && s.nan == 0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto count = static_cast<double>(elements);
  return {.max = has_range ? s.max + 0.0 : nan,  // of zeros alone +0, whichever came first
          .min = has_range ? s.min + 0.0 : nan,
          .mean = s.sum / count,
          .norm = std::sqrt(s.squares),
          .elements = count,
          .nan = static_cast<double>(s.nan),
          .positive_inf = static_cast<double>(s.positive_inf),
          .negative_inf = static_cast<double>(s.negative_inf),
          .zeros = static_cast<double>(s.zeros),
          .underflowed = static_cast<double>(s.underflowed),
          .saturated = static_cast<double>(s.saturated)};
}

}  // namespace aloft::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/update/piece_statistics.cpp"
#include "backends/cpu/update/piece_statistics.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/update/grouped_statistics-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

void add_floats(DType type, const void* p, std::int64_t n, StatisticsInLanes& to) {
  const FloatEdges edges = edges_of(type);
  if (type == DType::F64)
    return add_elements(InMemory<double>{static_cast<const double*>(p)}, 0, n, edges, to);
  if (type == DType::F32)
    return add_wide(InMemory<float>{static_cast<const float*>(p)}, 0, n, edges, to);
  if (type == DType::BF16)
    return add_grouped(InMemory<scalar::Bf16>{static_cast<const scalar::Bf16*>(p)}, n, edges, to);
  add_grouped(InMemory<scalar::F16>{static_cast<const scalar::F16*>(p)}, n, edges, to);
}

PieceStatistics add_lanes(const StatisticsInLanes& lanes) {
  StatisticsInLanes all = lanes;
  all.others.sum = sum_lanes(all.sums);
  all.others.squares = sum_lanes(all.squares);
  return all.others;
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(add_floats);
HWY_EXPORT(add_lanes);

void add_statistics(DType type, const void* p, std::int64_t n, StatisticsInLanes& to) {
  HWY_DYNAMIC_DISPATCH(add_floats)(type, p, n, to);
}

PieceStatistics together(const StatisticsInLanes& lanes) {
  return HWY_DYNAMIC_DISPATCH(add_lanes)(lanes);
}

void add(PieceStatistics& all, const PieceStatistics& piece) {
  all.sum += piece.sum;
  all.squares += piece.squares;
  all.extend(piece.min, piece.max);
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
  double mean = s.sum / count;
  // Of equal elements it is these, however their sum was rounded.
  if (has_range && s.min <= s.max) mean = std::clamp(mean, s.min, s.max);
  return {.max = has_range ? s.max + 0.0 : nan,  // of zeros alone +0, whichever came first
          .min = has_range ? s.min + 0.0 : nan,
          .mean = mean,
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

#include "observe/compare/overflowed_norm.h"

#include <cmath>

#include "observe/compare/noise.h"

namespace aloft::compare {

namespace {

// The record with the norm that it would have in double; nothing where that is its own, as far as
// one can tell. Of one that has overflowed it is the other's, where that one shows why.
std::optional<Record> with_norm_of(const Record& r, const Record& other) {
  if (!r.is_exact && r.has_shape && r.shape.empty() && r.norm.number && *r.norm.number < 0) {
    Record magnitude = r;
    magnitude.norm.number = -*r.norm.number;
    return magnitude;
  }
  const auto is_finite = [](const Figure& f) { return f.number && std::isfinite(*f.number); };
  const bool has_overflowed = !r.is_exact && r.norm.number && std::isinf(*r.norm.number) &&
                              is_finite(r.max) && is_finite(r.min);
  if (!has_overflowed || !is_finite(other.norm) || !is_at_end(*other.norm.number, r.type))
    return std::nullopt;
  Record in_range = r;
  in_range.norm = other.norm;
  return in_range;
}

}  // namespace

InRange::InRange(const Record& npu, const Record& bench)
    : npu_(npu),
      bench_(bench),
      other_npu_(with_norm_of(npu, bench)),
      other_bench_(with_norm_of(bench, npu)) {}

}  // namespace aloft::compare

// A stretch of one axis.
#pragma once

#include <cstdint>

#include "ops/declared.h"

namespace aloft {

struct SliceAttrs {
  std::int64_t axis = 0;
  std::int64_t start = 0;
  std::int64_t stop = INT64_MAX;
  std::int64_t step = 1;
  static constexpr auto fields() {
    using A = SliceAttrs;
    return FieldList{
        field("axis", &A::axis, "cut axis; negative from the back"),
        field("start", &A::start, "first index; negative from the back"),
        field("stop", &A::stop, "index behind the last; negative from the back, cut to the length"),
        field("step", &A::step, "distance of neighbours, at least 1")};
  }
};

// Inside: what `a` selects of an axis of `length` elements, after Python's rules: first index and
// count.
struct SliceRange {
  std::int64_t first = 0, count = 0;
};
constexpr SliceRange range_of(const SliceAttrs& a, std::int64_t length) {
  const auto place = [length](std::int64_t i) {
    if (i < 0) i += length;
    return i < 0 ? 0 : i > length ? length : i;
  };
  const std::int64_t first = place(a.start), stop = place(a.stop);
  return {first, stop > first ? (stop - first - 1) / a.step + 1 : 0};
}

// Elements start, start + step, ... before `stop` of an axis, after Python's rules: negative
// indices count from the back, and what lies outside is cut off. The axis is not symbolic.
Tensor slice(Operand x, std::int64_t axis, std::int64_t start, std::int64_t stop = INT64_MAX,
             std::int64_t step = 1);

}  // namespace aloft

#include "observe/compare/masks.h"

#include <cmath>

#include "observe/compare/noise.h"

namespace aloft::compare {

namespace {

double or_zero(const Figure& f) {
  return f.number && std::isfinite(*f.number) ? std::abs(*f.number) : 0;
}

// Values that are large, and no more than that, are none.
bool is_mask(const Record& r) {
  return r.min.number && *r.min.number < 0 && is_at_end(*r.min.number, r.type) &&
         !is_at_end(2 * or_zero(r.max), r.type);
}

// The same beside a mask: Aloft counts what is -inf, and its figures are those of the rest.
bool has_counted_mask(const Record& r) {
  return or_zero(r.minus_inf) > 0 && r.min.number && std::isfinite(*r.min.number);
}

}  // namespace

bool are_masks_both(const Record& n, const Record& b) {
  return is_mask(n) ? is_mask(b) || has_counted_mask(b) : has_counted_mask(n) && is_mask(b);
}

}  // namespace aloft::compare

#include "observe/compare/records_apart.h"

#include <algorithm>

#include "observe/compare/difference.h"
#include "observe/compare/noise.h"

namespace aloft::compare {

namespace {

// What is cast is off by some units of the coarser type.
constexpr double kUnitsOfCast = 4;

}  // namespace

bool has_float_norm(const Record& r) {
  return r.is_tensor && unit_of(r.type) > 0 && r.norm.number.has_value();
}

double apart(const Record& a, const Record& b) {
  const auto d = difference_of({&a, &b}, nullptr);
  return d ? d->size : 1;
}

bool is_cast_of(const Record& a, const Record& b) {
  return apart(a, b) <= kUnitsOfCast * std::max(unit_of(a.type), unit_of(b.type));
}

}  // namespace aloft::compare

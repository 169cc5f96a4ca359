#include "observe/compare/stored_update.h"

#include <algorithm>
#include <cmath>

#include "observe/compare/noise.h"

namespace aloft::compare {

namespace {

constexpr double kUnitF32 = 0x1p-24;

double or_zero(const Figure& f) {
  return f.number && std::isfinite(*f.number) ? std::abs(*f.number) : 0;
}
double largest_of(const Record& r) { return std::max(or_zero(r.max), or_zero(r.min)); }

// Of the length of the update, or of its largest element: whichever is off by more. Half a unit
// goes for the parameter behind the step, and as much for what the formula does on the way.
double of_run(const Record& parameter, const Record& update) {
  const double unit = unit_of(parameter.type);
  if (!(unit > 0) || unit > kUnitF32) return 0;
  const auto part = [&](double whole, double moved) {
    return whole > 0 && moved > 0 ? 2 * unit * whole / moved : 0;
  };
  return std::max(part(or_zero(parameter.norm), or_zero(update.norm)),
                  part(largest_of(parameter), largest_of(update)));
}

}  // namespace

double stored_update(const RecordPair& r, const EntryPair* forward) {
  if (!forward) return 0;
  for (const RecordPair& p : forward->records)
    if (p.npu && p.bench && p.npu->part == Part::Parameter && p.npu->own == r.npu->own)
      return of_run(*p.npu, *r.npu) + of_run(*p.bench, *r.bench);
  return 0;
}

}  // namespace aloft::compare

#include "observe/compare/small_loss.h"

#include <algorithm>
#include <cmath>

#include "observe/compare/noise.h"

namespace aloft::compare {

namespace {

double or_zero(const Figure& f) {
  return f.number && std::isfinite(*f.number) ? std::abs(*f.number) : 0;
}

}  // namespace

void SmallLoss::note_logits(const EntryPair& entry) {
  double given = 0, taken = 0;
  for (const RecordPair& r : entry.records) {
    if (!r.bench || unit_of(r.bench->type) == 0) continue;
    const double size = std::max(or_zero(r.bench->max), or_zero(r.bench->min));
    if (r.bench->part == Part::Input) taken = std::max(taken, size);
    if (r.bench->part == Part::Output && r.bench->elements() > 1) given = std::max(given, size);
  }
  logits_ = given > 0 ? given : taken;
}

double SmallLoss::of_gradient(double unit) const {
  const double lost = lost_digits(unit);
  return lost > 0 ? lost * (1 + *loss_ * logits_) : 0;
}

double SmallLoss::length_of_error(double measured, bool is_by_elements) {
  return is_by_elements ? measured : 2 * measured;
}

double SmallLoss::lost_digits(double unit) const {
  const double loss = loss_.value_or(1);
  if (!(loss < 1)) return 0;
  const double rounding = 2 * unit * (1 - loss);
  return rounding < loss ? rounding / loss : 1;
}

}  // namespace aloft::compare

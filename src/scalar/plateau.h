// A rate that falls when the loss does not: as torch.optim.lr_scheduler.ReduceLROnPlateau in its
// mode "min", with a relative threshold (of a loss below 0, too, a better one is lower). What it
// knows is four numbers, which a run keeps in its state: it goes on from a checkpoint as if it had
// never stopped.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace aloft::scalar {

struct PlateauRule {
  double factor = 0.1;         // of the rate, at each drop
  std::int64_t patience = 10;  // losses without a better one that are borne
  double threshold = 1e-4;    // a loss is better below so much less than the best, as a share of it
  std::int64_t cooldown = 0;  // losses behind a drop that do not count as bad
  double least = 0;           // of the factor on the rate
};

struct PlateauState {
  double factor = 1;  // on the rate, so far
  double best = std::numeric_limits<double>::infinity();
  double bad = 0, cooling = 0;  // losses without a better one; losses that are still not counted

  std::array<double, 4> numbers() const { return {factor, best, bad, cooling}; }
  static PlateauState of(const std::array<double, 4>& n) { return {n[0], n[1], n[2], n[3]}; }
};

// What is known once `loss` is. One that is not a number is no better one.
inline PlateauState next_plateau(PlateauState s, const PlateauRule& r, double loss) {
  const double better = s.best * (s.best < 0 ? 1 + r.threshold : 1 - r.threshold);
  if (loss < better) {
    s.best = loss;
    s.bad = 0;
  } else {
    s.bad += 1;
  }
  if (s.cooling > 0) {
    s.cooling -= 1;
    s.bad = 0;
  }
  if (s.bad > static_cast<double>(r.patience)) {
    s.factor = std::max(s.factor * r.factor, r.least);
    s.cooling = static_cast<double>(r.cooldown);
    s.bad = 0;
  }
  return s;
}

}  // namespace aloft::scalar

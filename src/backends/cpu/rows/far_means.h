// Norms of what lies far from 0: a mean in f32 is then rounded coarsely beside the distances from
// it. Distances from the rounded mean are exact, so their own mean is the rest that it lacks. Only
// such rows pay for looking.
#pragma once

#include <cmath>

namespace aloft::cpu {

// From this many deviations on the rounding of the mean may show in the last digits of a result.
inline bool is_far(double mean, double rstd) { return std::abs(mean) * rstd > 8; }

// A mean as f32 and its rest.
struct SplitMean {
  float near = 0;
  double rest = 0;
  SplitMean() = default;
  explicit SplitMean(double mean)
      : near(static_cast<float>(mean)), rest(mean - static_cast<double>(near)) {}
};

// The rest of a mean that a forward pass rounded, from the mean of the distances from it: 0 where
// that is no rounding error, but the number is another's mean.
inline double rest_of(float mean, double mean_distance) {
  const bool is_rounding = std::abs(mean_distance) <= 0x1p-23 * std::abs(static_cast<double>(mean));
  return is_rounding ? mean_distance : 0;
}

// rest * a, and nothing where there is no rest, also of an infinite a.
inline double of_rest(double rest, double a) { return rest == 0 ? 0 : rest * a; }

}  // namespace aloft::cpu

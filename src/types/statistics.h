// What the op `statistics` says of a tensor of floats, number by number: it writes them in this
// order, each as f64, and whoever reads its result reads them by these names.
#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "types/dtype.h"

namespace aloft {

// A NaN among the elements makes max, min, mean and norm NaN, an infinity the norm infinite, as
// torch has it. Of no element at all max, min and mean are NaN.
struct TensorStatistics {
  double max = 0, min = 0, mean = 0;
  double norm = 0;  // square root of the sum of squares
  double elements = 0;
  double nan = 0, positive_inf = 0, negative_inf = 0;
  double zeros = 0;        // of either sign
  double underflowed = 0;  // not zero, and smaller than the type's normal numbers: bits are lost
  double saturated = 0;    // of the type's largest finite magnitude

  static constexpr std::size_t kNumbers = 11;

  void put(double* to) const {
    const double all[kNumbers] = {max,          min,          mean,  norm,        elements, nan,
                                  positive_inf, negative_inf, zeros, underflowed, saturated};
    for (std::size_t i = 0; i < kNumbers; ++i) to[i] = all[i];
  }
  // Of kNumbers numbers, or more.
  static TensorStatistics from(std::span<const double> all) {
    return {all[0], all[1], all[2], all[3], all[4], all[5],
            all[6], all[7], all[8], all[9], all[10]};
  }
};

// Where it is asked for, a count of elements for each exponent follows: number e of those whose
// magnitude is 2^(e - 127) or more and less than twice that, as f32 numbers them for every type;
// the first, of all that is smaller, zeros included; the last, of all that is larger, inf and NaN
// included.
inline constexpr std::size_t kExponents = 256;

// A program's output with the statistics of a value is called as the value, with the first of these
// in front, or the second where the counts of exponents are with them; the one with all of them,
// one behind the other, as the third.
inline constexpr std::string_view kStatisticsPrefix = "statistics:";
inline constexpr std::string_view kExponentsPrefix = "exponents:";
inline constexpr std::string_view kAllStatistics = "all statistics";

// Where a float type's normal numbers begin and its finite ones end.
struct FloatEdges {
  double least_normal = 0, largest = 0;
};

constexpr FloatEdges edges_of(DType t) {
  switch (t) {
    case DType::F64:
      return {DBL_MIN, DBL_MAX};
    case DType::F16:
      return {0x1p-14, 65504};
    case DType::BF16:
      return {0x1p-126, 0x1.fep+127};
    default:
      return {0x1p-126, FLT_MAX};
  }
}

}  // namespace aloft

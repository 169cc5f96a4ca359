// How the operands of an optimizer's update op are numbered. One op updates a whole list of
// tensors, so that a back end can sweep over all of them at once:
//
//   inputs   lr f32[], multiplier f32[], finite i32[], applied i64[],
//            n parameters, n gradients, n masters (where has_master), n of each moment
//   outputs  n parameters, n masters (where has_master), n of each moment
//
// A master is f32 of the parameter's shape, or, where is_split, the u8 remainders that together
// with the bf16 parameter are the same f32 (scalar/split_float.h).
#pragma once

#include <cstdint>

namespace aloft {

struct UpdateLayout {
  static constexpr int kLr = 0, kMultiplier = 1, kFinite = 2, kApplied = 3, kFirst = 4;

  int count = 0;  // n
  bool has_master = false;
  int moments = 0;  // 0: plain SGD, 1: momentum, 2: Adam
  bool is_split = false;

  // As a layout counts; -1, which no op has, for what it cannot count.
  static int count_of(std::int64_t count) {
    return count >= 0 && count <= (1 << 20) ? static_cast<int>(count) : -1;
  }

  int inputs() const { return kFirst + (2 + has_master + moments) * count; }
  int outputs() const { return (1 + has_master + moments) * count; }

  int parameter(int i) const { return kFirst + i; }
  int gradient(int i) const { return kFirst + count + i; }
  int master(int i) const { return kFirst + 2 * count + i; }
  int moment(int which, int i) const { return kFirst + (2 + has_master + which) * count + i; }

  int new_parameter(int i) const { return i; }
  int new_master(int i) const { return count + i; }
  int new_moment(int which, int i) const { return (1 + has_master + which) * count + i; }
};

}  // namespace aloft

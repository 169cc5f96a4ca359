// How far a kernel's result may be from what its op means, computed in double: standards of four
// kinds, as msprobe's acc_check has them. docs/acc-check.md says which op is held to which.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "types/dtype.h"

namespace aloft::accuracy {

enum class Standard {
  Binary,     // the meaning rounded to the type, exactly
  Absolute,   // each element within a part of its own size
  Ulp,        // few elements more than so many units in the last place off, and none by more than
              // its sum can lose
  Benchmark,  // no worse than some times what the same steps lose, each rounded to its type
};

// "binary", "absolute", "ulp", "benchmark".
std::string_view name_of(Standard standard);

// What a result is held to, of as many elements each.
struct Compared {
  DType type = DType::F32;            // of the result
  std::span<const double> result;     // the kernel's
  std::span<const double> meaning;    // in double, rounded nowhere
  std::span<const double> benchmark;  // every step rounded; of Standard::Benchmark alone
  DType inner = DType::F64;           // ... in which the call may compute in between, if coarser
  // Of Standard::Absolute: how much farther each element may be off, as what is rounded at random
  // to a neighbour; empty: none.
  std::span<const double> apart = {};
  // The magnitudes of all products, or terms, that an element is the sum of, added up, and how many
  // these are; empty: not known, and no element is held to them. Not of Binary and Absolute.
  std::span<const double> summed = {};
  std::int64_t terms = 0;
  // Of Standard::Benchmark: the result's shape, by which elements are measured beside those that
  // they have an index in common with; empty: beside all.
  std::span<const std::int64_t> shape = {};
};

// Figures of a result. Errors are those of finite elements.
struct Accuracy {
  Standard standard = Standard::Binary;
  std::size_t elements = 0;
  double max_absolute = 0, max_relative = 0, mean_relative = 0, rmse = 0;
  double mean_ulp = 0, max_ulp = 0, share_over_limit = 0;  // limit: 1 of 16 bits, 32 of f32
  double rmse_ratio = 0, max_ratio = 0, mean_ratio = 0;    // to the benchmark's
  double worst_result = 0, worst_meaning = 0;              // where it is farthest off
  std::size_t worst = 0;                                   // flat index of that element
  bool is_passed = true;
  std::string why;  // where it is not: which figure, and its limit
};

Accuracy accuracy_of(Standard standard, const Compared& c);

}  // namespace aloft::accuracy

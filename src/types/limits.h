// What a number, or a word, may be: said once, where the setting is described.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aloft {

// A range of numbers, or a choice of words; of neither anything goes.
struct Limits {
  double least = 0, most = 0;                // numbers from least to most, where least < most
  bool is_below = false;                     // most itself is too much
  std::vector<std::string_view> words = {};  // texts: one of these

  bool has_range() const { return least < most; }
  bool admits(double number) const;  // NaN: never in a range
  bool admits(std::string_view word) const;
  std::string range() const;  // "0 to 1", "0 to below 1"; "" where there is none
};

}  // namespace aloft

// Which hyper-parameter of the one side is which of the other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "observe/config_check/side.h"

namespace aloft::config_check {

struct SettingPair {
  const Setting *a = nullptr, *b = nullptr;  // one may be missing
  std::string matched;                       // "name", "synonym", "similar 0.88"; "" of one alone
};

// All settings of both sides, each once: those of `a` in their order, then what `b` has alone. By
// the whole key, by its last part, by synonyms (synonyms.inc), at last by how alike the last parts
// are; names that differ in digits alone are others.
std::vector<SettingPair> pair_settings(const std::vector<Setting>& a,
                                       const std::vector<Setting>& b);

// The last part of a key, in lower case and with '_' for '-'.
std::string last_part(std::string_view key);

// How alike two texts are, from 0 to 1: twice what they have in common in order, longest runs
// first, of their lengths together (Ratcliff and Obershelp's measure, that of Python's difflib).
double similarity(std::string_view a, std::string_view b);

}  // namespace aloft::config_check

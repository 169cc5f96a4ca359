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
// the whole key, by synonyms of whole keys, by its last part, by synonyms (synonyms.inc; of a
// recipe's data.length those of an example's length come first), at last by how alike the last
// parts are; names that differ in digits alone are others. Of last parts that say nothing of
// themselves (`type`, `enabled`) that before them must be the same, too.
std::vector<SettingPair> pair_settings(const std::vector<Setting>& a,
                                       const std::vector<Setting>& b);

// What a key is called by synonyms, the whole or its last part: "optimizer" of "optimizer.kind",
// "optim" and "optimizer.type"; "" where there are none.
std::string_view common_name(std::string_view key);

// The last part of a key, in lower case and with '_' for '-'.
std::string last_part(std::string_view key);

// How alike two texts are, from 0 to 1: twice what they have in common in order, longest runs
// first, of their lengths together (Ratcliff and Obershelp's measure, that of Python's difflib).
double similarity(std::string_view a, std::string_view b);

}  // namespace aloft::config_check

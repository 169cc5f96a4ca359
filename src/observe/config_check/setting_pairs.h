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

// How alike two texts are, from 0 to 1: twice what they have in common in order, longest runs
// first, of their lengths together (Ratcliff and Obershelp's measure, that of Python's difflib).
double similarity(std::string_view a, std::string_view b);

// Whether two values say the same: numbers as numbers however they are written, types of numbers by
// any of their names (bf16, bfloat16, torch.bfloat16), true and false in any case, lists item by
// item. Of settings named after a type (`--bf16`) true stands for that type.
bool same_value(const Setting& a, const Setting& b);
bool same_text(std::string_view a, std::string_view b);

// Whether nothing that is learnt depends on it, by its name (harmless.inc) or as it says.
bool is_harmless(const Setting& setting);

// A value for people: a text without quotes.
std::string value_text(const Setting& setting);

}  // namespace aloft::config_check

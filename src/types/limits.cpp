#include "types/limits.h"

#include <algorithm>

#include "base/text.h"

namespace aloft {

bool Limits::admits(double number) const {
  if (!has_range()) return true;
  return number >= least && (is_below ? number < most : number <= most);
}

bool Limits::admits(std::string_view word) const {
  return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

std::string Limits::range() const {
  if (!has_range()) return "";
  return shortest(least) + (is_below ? " to below " : " to ") + shortest(most);
}

}  // namespace aloft

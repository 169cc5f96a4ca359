// Inside: what a schedule holds besides plain numbers, as the attributes of its op have it: a table
// of factors, and the schedules that it is put together from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace aloft {

// "1 0.5 0.25": each parses back to the same double; "" of none.
inline std::string text_of_factors(const std::vector<double>& factors) {
  std::string text;
  for (const double f : factors) text += (text.empty() ? "" : " ") + shortest(f);
  return text;
}
// UserError E0105 where one is no number.
inline std::vector<double> factors_of_text(std::string_view text) {
  std::vector<double> factors;
  if (text.empty()) return factors;
  for (const std::string_view word : split(text, ' ')) {
    const std::optional<double> f = parse_double(word);
    if (!f)
      throw UserError("E0105", "a schedule's table has a factor that is no number")
          .saw("'" + std::string(word) + "'");
    factors.push_back(*f);
  }
  return factors;
}

}  // namespace aloft

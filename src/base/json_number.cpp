#include "base/json_number.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace aloft {

nlohmann::ordered_json json_number(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

}  // namespace aloft

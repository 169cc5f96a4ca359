#include "run/validation_loss_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace aloft {

nlohmann::json json_of(const ValidationLoss& v) {
  const auto number = [](double x) { return std::isfinite(x) ? nlohmann::json(x) : nullptr; };
  nlohmann::json out = {{"val_loss", number(v.loss)}};
  for (const Measure& m : v.measures) out["val_" + m.name] = number(m.value);
  return out;
}

}  // namespace aloft

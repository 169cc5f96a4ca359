#include "run/validation_loss_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace aloft {

nlohmann::json json_of(const ValidationLoss& v) {
  const auto number = [](double x) { return std::isfinite(x) ? nlohmann::json(x) : nullptr; };
  nlohmann::json out = {{"val_loss", number(v.loss)}, {"val_perplexity", number(v.perplexity)}};
  if (v.bits_per_byte) out["val_bits_per_byte"] = number(*v.bits_per_byte);
  return out;
}

}  // namespace aloft

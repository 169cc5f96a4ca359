#include "tasks/loss_text.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace aloft {

std::string loss_text(double x) {
  return std::abs(x) < 1e4 ? fmt::format("{:.4f}", x) : fmt::format("{:.4g}", x);
}

std::vector<Measure> measures_of_text(double loss, std::optional<double> bytes_a_token) {
  const double perplexity = std::exp(loss);
  std::vector<Measure> out{
      {"perplexity", perplexity, fmt::format("perplexity {:.4g}", perplexity)}};
  if (!bytes_a_token) return out;
  const double bits = loss / std::numbers::ln2 / *bytes_a_token;
  out.push_back({"bits_per_byte", bits, loss_text(bits) + " bits per byte"});
  return out;
}

}  // namespace aloft

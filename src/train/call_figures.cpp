#include "train/call_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_number.h"
#include "base/text.h"

namespace aloft {

namespace {

using Json = nlohmann::ordered_json;

// Both sums are in double, and so are the elements.
constexpr double kSummed = 0x1p-30;

template <typename J>
double number_in(const J& figure) {
  if (figure.is_number()) return figure.template get<double>();
  const auto word = figure.is_string() ? parse_double(figure.template get<std::string>())
                                       : std::optional<double>();
  return word ? *word : NAN;
}

bool is_same(double a, double b, double size) {
  if (!std::isfinite(a) || !std::isfinite(b)) return a == b || (std::isnan(a) && std::isnan(b));
  return std::abs(a - b) <= kSummed * size;
}

}  // namespace

Json call_figures(const HostArray& values) {
  Json figures;
  if (values.values.empty() || !is_float(values.dtype)) {
    for (const char* key : {"Max", "Min", "Mean", "Norm"}) figures[key] = nullptr;
    return figures;
  }
  double max = -INFINITY, min = INFINITY, sum = 0, squares = 0;
  for (const double v : values.values) {
    max = std::isnan(v) || v > max ? v : max;
    min = std::isnan(v) || v < min ? v : min;
    sum += v;
    squares += v * v;
  }
  figures["Max"] = json_number(max);
  figures["Min"] = json_number(min);
  figures["Mean"] = json_number(sum / static_cast<double>(values.values.size()));
  figures["Norm"] = json_number(std::sqrt(squares));
  return figures;
}

std::string contradicted_figure(const nlohmann::json& record, const HostArray& values) {
  const Json figures = call_figures(values);
  const auto finite_size = [&](const char* key) {
    const double v = figures[key].is_null() ? 0 : std::abs(number_in(figures[key]));
    return std::isfinite(v) ? v : 0;
  };
  const double largest = std::max(finite_size("Max"), finite_size("Min"));
  for (const auto& [key, is] : figures.items()) {
    const auto said = record.find(key);
    if (is.is_null() || said == record.end() || said->is_null()) continue;
    const double size = key == "Norm" ? finite_size("Norm") : largest;
    if (!is_same(number_in(is), number_in(*said), size))
      return fmt::format("{} is {:.9g}, and in dump.json {}", key, number_in(is), said->dump());
  }
  return "";
}

}  // namespace aloft

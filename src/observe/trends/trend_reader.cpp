#include "observe/trends/trend_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "observe/probe/tap_words.h"

namespace aloft::trends {

using probe::kCall, probe::kGradient, probe::kParameter, probe::kUpdate;
using probe::LookedAt, probe::take_prefix, probe::take_suffix;

namespace {

constexpr std::string_view kOutput = ".output";
// Of the elements that are not zero, so many may lie below the lowest exponent that is said.
constexpr double kBelowLow = 0.001;

// More digits than anybody reads make lines longer. What rules go by is the number that is written,
// so that a run that goes on reads the same.
double six_digits(double x) {
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  return std::stod(fmt::format("{:.6g}", x));
}

void put(std::optional<double>& to, double x) { to = six_digits(x); }
// Shares and counts that are 0 are left out.
void put_above_zero(std::optional<double>& to, double x) {
  if (x != 0) to = six_digits(x);
}

// Several tensors as if they were one.
struct Joined {
  double elements = 0, squares = 0, largest = 0, zeros = 0, saturated = 0, underflowed = 0, nan = 0;
  std::vector<std::int64_t> exponents = {};

  Joined(const std::vector<LookedAt>& values, std::span<const double> all) {
    for (const LookedAt& value : values) {
      const TensorStatistics s = probe::statistics_of(value, all);
      if (s.elements == 0) continue;
      elements += s.elements;
      squares += s.norm * s.norm;
      largest = std::max({largest, std::abs(s.max), std::abs(s.min)});
      zeros += s.zeros;
      saturated += s.saturated + s.positive_inf + s.negative_inf;
      underflowed += s.underflowed;
      nan += s.nan;
      const auto own = probe::exponents_of(value, all);
      if (exponents.empty()) exponents.resize(own.size());
      for (std::size_t e = 0; e < own.size() && e < exponents.size(); ++e) exponents[e] += own[e];
    }
  }
  double norm() const { return std::sqrt(squares); }
  double share(double count) const { return elements > 0 ? count / elements : 0; }
};

// The exponents from the lowest, below which next to nothing lies, to the highest. Zeros have none.
void put_exponents(const Joined& of, std::optional<double>& low, std::optional<double>& high) {
  if (of.exponents.empty()) return;
  std::vector<double> counts(of.exponents.begin(), of.exponents.end() - 1);
  counts[0] -= of.zeros;
  double some = 0;
  for (const double n : counts) some += n;
  double below = 0;
  for (std::size_t e = 0; e < counts.size(); ++e) {
    if (counts[e] <= 0) continue;
    const double exponent = static_cast<double>(e) - 127;
    below += counts[e];
    if (!low && below > kBelowLow * some) low = exponent;
    high = exponent;
  }
}

}  // namespace

TrendReader::TrendReader(std::vector<LookedAt> values) {
  // Layers of calls come first, as their calls end.
  std::stable_sort(values.begin(), values.end(), [](const LookedAt& a, const LookedAt& b) {
    const auto rank = [](const LookedAt& v) {
      const bool is_output = v.name.starts_with(kCall) && v.name.ends_with(kOutput);
      return std::pair(!is_output, is_output ? v.order : 0);
    };
    return rank(a) < rank(b);
  });
  for (LookedAt& value : values) add(std::move(value));
}

TrendReader::Layer& TrendReader::layer_of(std::string_view path) {
  const std::string_view name = path.empty() ? kModelLayer : path;
  const auto it = std::ranges::find(layers_, name, &Layer::name);
  if (it != layers_.end()) return *it;
  return layers_.emplace_back(Layer{std::string(name), {}, {}, {}, {}, {}});
}

void TrendReader::add(LookedAt value) {
  const std::string full = value.name;
  std::string_view name = full;
  if (take_prefix(name, kCall)) {
    const bool is_gradient = take_suffix(name, kGradient);
    if (!take_suffix(name, kOutput)) return;
    Layer& layer = layer_of(name.substr(0, name.rfind('#')));
    (is_gradient ? layer.output_gradients : layer.outputs).push_back(std::move(value));
  } else if (take_prefix(name, kParameter)) {
    const bool is_gradient = take_suffix(name, kGradient);
    const bool is_update = !is_gradient && take_suffix(name, kUpdate);
    const std::size_t dot = name.rfind('.');
    Layer& layer = layer_of(dot == std::string_view::npos ? "" : name.substr(0, dot));
    (is_gradient ? layer.gradients
     : is_update ? layer.updates
                 : layer.weights)
        .push_back(std::move(value));
  }
}

std::vector<LayerTrends> TrendReader::read(std::span<const double> all,
                                           double gradient_factor) const {
  using enum Trend;
  std::vector<LayerTrends> out;
  for (const Layer& layer : layers_) {
    LayerTrends& t = out.emplace_back();
    t.layer = layer.name;
    const Joined weights(layer.weights, all), gradients(layer.gradients, all);
    if (!layer.weights.empty()) put(t[WeightNorm], weights.norm());
    if (!layer.gradients.empty()) put(t[GradNorm], gradients.norm() / gradient_factor);
    if (!layer.updates.empty() && weights.norm() != 0)
      put(t[UpdateRatio], Joined(layer.updates, all).norm() / weights.norm());
    Joined outputs(layer.outputs, all), back(layer.output_gradients, all);
    if (outputs.elements > 0) {
      const double rms = std::sqrt(outputs.squares / outputs.elements);
      put(t[OutputRms], rms);
      if (rms != 0) put(t[OutputOutlier], outputs.largest / rms);
      put_above_zero(t[OutputZeros], outputs.share(outputs.zeros));
      put_above_zero(t[OutputSaturated], outputs.share(outputs.saturated));
      put_above_zero(t[OutputUnderflowed], outputs.share(outputs.underflowed));
      put_above_zero(t[OutputNan], outputs.nan);
      put_exponents(outputs, t[OutputExponentLow], t[OutputExponentHigh]);
    }
    // A product of finite numbers may be larger than its type: weights' own are looked at, too.
    put_above_zero(t[GradientSaturated],
                   std::max(back.share(back.saturated), gradients.share(gradients.saturated)));
    put_above_zero(t[GradientUnderflowed], back.share(back.underflowed));
    put_above_zero(t[GradientNan], back.nan + gradients.nan);
    put_exponents(back, t[GradientExponentLow], t[GradientExponentHigh]);
    t.output_exponents = std::move(outputs.exponents);
    t.gradient_exponents = std::move(back.exponents);
  }
  return out;
}

}  // namespace aloft::trends

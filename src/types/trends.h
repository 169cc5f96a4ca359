// What the monitor (docs/trends.md) says of a step: a row of numbers for each layer, and which of
// its rules found something.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aloft {

// A number that a layer has. A layer is a module of the model; its parameters are those that lie in
// it directly, its outputs what its calls give. What each number means: docs/trends.md.
enum class Trend : std::uint8_t {
  WeightNorm,
  GradNorm,
  UpdateRatio,
  OutputRms,
  OutputOutlier,
  OutputZeros,
  OutputSaturated,
  OutputUnderflowed,
  OutputNan,
  OutputExponentLow,
  OutputExponentHigh,
  GradientSaturated,
  GradientUnderflowed,
  GradientNan,
  GradientExponentLow,
  GradientExponentHigh,
};

// By the order of Trend: the keys of metrics.jsonl and the tags of TensorBoard.
inline constexpr std::array<std::string_view, 16> kTrendNames = {"weight_norm",
                                                                 "grad_norm",
                                                                 "update_ratio",
                                                                 "output_rms",
                                                                 "output_outlier",
                                                                 "output_zeros",
                                                                 "output_saturated",
                                                                 "output_underflowed",
                                                                 "output_nan",
                                                                 "output_exponent_low",
                                                                 "output_exponent_high",
                                                                 "gradient_saturated",
                                                                 "gradient_underflowed",
                                                                 "gradient_nan",
                                                                 "gradient_exponent_low",
                                                                 "gradient_exponent_high"};

// The name of the model itself among its layers.
inline constexpr std::string_view kModelLayer = "(model)";

struct LayerTrends {
  std::string layer;  // the module's path: "h.0.mlp.c_fc"
  // By Trend. None: the layer has no such number, or, of shares and counts, it is 0. NaN: it is not
  // finite.
  std::array<std::optional<double>, kTrendNames.size()> numbers = {};
  // How many elements of what it gives, and of the gradients of that, have which exponent
  // (kExponents); empty where they were not counted.
  std::vector<std::int64_t> output_exponents = {}, gradient_exponents = {};

  std::optional<double>& operator[](Trend t) { return numbers[static_cast<std::size_t>(t)]; }
  const std::optional<double>& operator[](Trend t) const {
    return numbers[static_cast<std::size_t>(t)];
  }
};

// A rule of [monitor] that has found something.
struct TrendAlert {
  std::string rule;   // "norm_jump", "dead_layer", "saturation", "nan", "loss_spike"
  std::string layer;  // empty: the loss
  double value = 0;   // what the rule goes by; NaN: not finite
  std::string text;   // for people: "the norm of its gradients is 12.3, ..."
};

}  // namespace aloft

#include "train/settle_precision.h"

#include <fmt/format.h>

#include "base/log.h"

namespace aloft {

namespace {
double ratio_of(const MeasuredRates& rates) {
  return rates.f32_gflops > 0 ? rates.bf16_gflops / rates.f32_gflops : 0;
}
}  // namespace

std::string describe(const MeasuredRates& rates) {
  return fmt::format("f32 {:.0f}, bf16 {:.0f} GFLOP/s ({:.2f}x){}{}", rates.f32_gflops,
                     rates.bf16_gflops, ratio_of(rates), rates.source.empty() ? "" : ", ",
                     rates.source);
}

PrecisionRecipe settle_precision(const PrecisionRecipe& recipe,
                                 const std::function<MeasuredRates()>& measure) {
  const bool wants_low = recipe.level_is_auto || recipe.level != Level::O0;
  if (!wants_low || !measure) {
    if (recipe.is_resolved()) return recipe;
    return resolve_auto(recipe, recipe.level_is_auto ? Level::O0 : recipe.level,
                        recipe.low_is_auto ? DType::BF16 : recipe.low, "nothing was measured");
  }
  const MeasuredRates rates = measure();
  const double ratio = ratio_of(rates);
  const std::string numbers =
      fmt::format("bf16 {:.0f} GFLOP/s, f32 {:.0f} GFLOP/s on a large product ({:.2f}x)",
                  rates.bf16_gflops, rates.f32_gflops, ratio);
  if (recipe.is_resolved()) {
    if (recipe.low == DType::BF16 && ratio <= 1)
      log_warning("bf16 is no faster than fp32 on this machine: {}. O0 may train faster.", numbers);
    return recipe;
  }
  // Half-width storage pays a little even where the products are no faster; the bar leaves room
  // for noise in the measurement.
  constexpr double kWorthIt = 1.05;
  const bool low_pays = ratio >= kWorthIt;
  const Level level = recipe.level_is_auto ? (low_pays ? Level::O2 : Level::O0) : recipe.level;
  const DType low = recipe.low_is_auto ? DType::BF16 : recipe.low;
  return resolve_auto(recipe, level, low, numbers);
}

}  // namespace aloft

#include <algorithm>

#include "recipe/recipe.h"

namespace aloft {

namespace {
bool has_histogram(const ProbeSection& probe, std::int64_t step) {
  return probe.histograms && step % probe.histogram_every == 0;
}
}  // namespace

Look look_at(const ProbeSection& probe, std::int64_t step) {
  if (probe.task == "none") return Look::Nothing;
  const bool is_listed = std::ranges::find(probe.at, step) != probe.at.end();
  if (!probe.at.empty() && !is_listed) return Look::Nothing;
  if (has_histogram(probe, step)) return Look::Exponents;
  return is_listed || step % probe.every == 0 ? Look::Statistics : Look::Nothing;
}

std::vector<Look> looks_of(const ProbeSection& probe) {
  using enum Look;
  if (probe.task == "none") return {Nothing};
  std::vector<Look> looks;
  const auto add = [&](Look look) {
    if (std::ranges::find(looks, look) == looks.end()) looks.push_back(look);
  };
  if (!probe.at.empty()) {
    add(Nothing);
    for (const std::int64_t step : probe.at) add(look_at(probe, step));
    return looks;
  }
  const bool counts_each = probe.histograms && probe.histogram_every == 1;
  if (probe.every > 1 && !counts_each) add(Nothing);
  if (!probe.histograms || probe.every % probe.histogram_every != 0) add(Statistics);
  if (probe.histograms) add(Exponents);
  return looks;
}

}  // namespace aloft

#include <algorithm>

#include "recipe/recipe.h"

namespace aloft {

namespace {

// Of another task the key is one that the command line has left behind.
bool has_histograms(const ProbeSection& probe) {
  return probe.histograms && (probe.task == "statistics" || probe.task == "tensor");
}
bool has_histogram(const ProbeSection& probe, std::int64_t step) {
  return has_histograms(probe) && step % probe.histogram_every == 0;
}

Look probed(const ProbeSection& probe, std::int64_t step) {
  if (probe.task == "none") return Look::Nothing;
  const bool is_listed = std::ranges::find(probe.at, step) != probe.at.end();
  if (!probe.at.empty() && !is_listed) return Look::Nothing;
  if (has_histogram(probe, step)) return Look::Exponents;
  return is_listed || step % probe.every == 0 ? Look::Statistics : Look::Nothing;
}

// Whether the probe looks at every step that the monitor looks at. Of those of `at` there are but
// some.
bool covers(const ProbeSection& probe, const MonitorSection& monitor) {
  if (probe.task == "none" || !probe.at.empty()) return false;
  return monitor.every % probe.every == 0 ||
         (has_histograms(probe) && monitor.every % probe.histogram_every == 0);
}

std::vector<Look> probed(const ProbeSection& probe) {
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
  const bool counts = has_histograms(probe);
  const bool counts_each = counts && probe.histogram_every == 1;
  if (probe.every > 1 && !counts_each) add(Nothing);
  if (!counts || probe.every % probe.histogram_every != 0) add(Statistics);
  if (counts) add(Exponents);
  return looks;
}

}  // namespace

Look look_at(const ProbeSection& probe, std::int64_t step, const MonitorSection& monitor) {
  const Look look = probed(probe, step);
  return look == Look::Nothing && monitors(monitor, step) ? Look::Trends : look;
}

std::vector<Look> looks_of(const ProbeSection& probe, const MonitorSection& monitor) {
  std::vector<Look> looks = probed(probe);
  if (!monitor.on || covers(probe, monitor)) return looks;
  if (monitor.every == 1) std::erase(looks, Look::Nothing);
  looks.push_back(Look::Trends);
  // The one of most steps is the first.
  if (monitor.every == 1) std::ranges::rotate(looks, looks.end() - 1);
  return looks;
}

}  // namespace aloft

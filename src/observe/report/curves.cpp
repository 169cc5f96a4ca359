#include "observe/report/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace aloft {

using nlohmann::json;

namespace {

constexpr const char* kColumns[] = {"step",       "loss",         "lr",    "grad_norm",
                                    "loss_scale", "tokens_per_s", "time_s"};
constexpr bool kAveraged[] = {false, true, false, true, false, true, false};
constexpr std::size_t kCount = std::size(kColumns);

double number(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>()
                                               : std::numeric_limits<double>::quiet_NaN();
}

json rounded(double x) {
  if (!std::isfinite(x)) return nullptr;
  if (x == std::floor(x) && std::abs(x) < 1e15) return static_cast<std::int64_t>(x);
  // Seven digits are more than a screen shows, and a third of the bytes.
  const double scale = std::pow(10.0, 6 - std::floor(std::log10(std::abs(x))));
  return std::isfinite(scale) && scale > 0 ? std::round(x * scale) / scale : x;
}

// One entry for rows [from, to) of a column. A group with any number that is not finite keeps the
// others' mean: the skips are listed apart.
json entry(const std::vector<double>& column, std::size_t from, std::size_t to, bool averaged) {
  if (!averaged) return rounded(column[to - 1]);
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = from; i < to; ++i)
    if (std::isfinite(column[i])) sum += column[i], ++count;
  return count ? rounded(sum / static_cast<double>(count)) : json(nullptr);
}

}  // namespace

json curves_of(std::string_view metrics, std::size_t most) {
  std::vector<double> columns[kCount];
  json evaluations = json::array(), skips = json::array();
  for (std::size_t at = 0; at < metrics.size();) {
    const std::size_t end = std::min(metrics.find('\n', at), metrics.size());
    const json line = json::parse(metrics.substr(at, end - at), nullptr, false);
    at = end + 1;
    if (!line.is_object() || !std::isfinite(number(line, "step"))) continue;
    if (line.contains("val_loss")) {
      evaluations.push_back({rounded(number(line, "step")), rounded(number(line, "val_loss"))});
      continue;
    }
    for (std::size_t c = 0; c < kCount; ++c) columns[c].push_back(number(line, kColumns[c]));
    const auto skipped = line.find("skipped");
    if (skipped != line.end() && skipped->is_boolean() && skipped->get<bool>()) {
      const auto culprit = line.find("culprit");
      const bool named = culprit != line.end() && culprit->is_string();
      skips.push_back({line["step"], named ? *culprit : json("")});
    }
  }
  const std::size_t steps = columns[0].size();
  const std::size_t group = most ? std::max<std::size_t>(1, (steps + most - 1) / most) : 1;
  json out = {{"steps", steps}, {"group", group}, {"skipped", skips.size()}};
  for (std::size_t c = 0; c < kCount; ++c) {
    json& column = out[kColumns[c]] = json::array();
    for (std::size_t i = 0; i < steps; i += group)
      column.push_back(entry(columns[c], i, std::min(i + group, steps), kAveraged[c]));
  }
  if (skips.size() > kMostSkips)
    skips.erase(skips.begin(), skips.end() - static_cast<std::ptrdiff_t>(kMostSkips));
  out["evaluations"] = std::move(evaluations);
  out["skips"] = std::move(skips);
  return out;
}

}  // namespace aloft

#include "observe/report/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/json.h"

namespace aloft {

using nlohmann::json;

namespace {

constexpr const char* kColumns[] = {"step",       "loss", "lr",    "grad_norm",
                                    "loss_scale", "rate", "time_s"};
constexpr std::size_t kStep = 0, kLoss = 1, kLossScale = 4, kRate = 5, kTime = 6;
// A group stands in its middle: were it drawn at its end, it would lag behind what is not grouped.
constexpr bool kAveraged[] = {true, true, true, true, false, true, false};
constexpr std::size_t kCount = std::size(kColumns);
// No run comes near; their sums are finite.
constexpr double kMostSteps = 9007199254740992;  // 2^53

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

// "tokens_per_s", or of another task "examples_per_s".
double rate_in(const json& line) {
  constexpr std::string_view kMark = "_per_s";
  for (const auto& [key, value] : line.items())
    if (key.ends_with(kMark)) return number(line, key.c_str());
  return std::numeric_limits<double>::quiet_NaN();
}

// Of rates the harmonic one: steps have as many tokens each, a fast one does not outweigh the rest.
class Mean {
 public:
  explicit Mean(bool of_rates) : of_rates_(of_rates) {}
  void add(double x) {
    sum_ += of_rates_ ? 1 / x : x;
    ++count_;
  }
  json value() const {
    if (count_ == 0) return nullptr;
    return rounded(of_rates_ ? count_ / sum_ : sum_ / count_);
  }

 private:
  bool of_rates_;
  double sum_ = 0, count_ = 0;
};

// One entry for rows [from, to) of a column. A group with any number that is not finite keeps the
// others' mean: the skips are listed apart.
json entry(const std::vector<double>& column, std::size_t from, std::size_t to, std::size_t kind) {
  if (!kAveraged[kind]) return rounded(column[to - 1]);
  Mean mean(kind == kRate);
  for (std::size_t i = from; i < to; ++i)
    if (std::isfinite(column[i])) mean.add(column[i]);
  return mean.value();
}

struct Stretch {
  std::ptrdiff_t begin, end;
};

// The entries between one resume and the next: what is smoothed across one shows what never was.
std::vector<Stretch> stretches_of(const json& steps, std::vector<double> resumes) {
  std::sort(resumes.begin(), resumes.end());
  std::vector<Stretch> out;
  std::ptrdiff_t begin = 0, at = 0;
  const auto count = static_cast<std::ptrdiff_t>(steps.size());
  for (const double resume : resumes) {
    while (at < count && !(steps[static_cast<std::size_t>(at)].get<double>() > resume)) ++at;
    if (at > begin) out.push_back({begin, at});
    begin = at;
  }
  if (count > begin) out.push_back({begin, count});
  return out;
}

// Means over windows that are centred, shrinking towards both ends of a stretch: a straight line
// stays where it is, so the curve neither lags nor leads. Null where the column is.
json centred_means(const json& column, const std::vector<Stretch>& stretches, bool of_rates) {
  const auto count = static_cast<std::ptrdiff_t>(column.size());
  const std::ptrdiff_t most = std::clamp<std::ptrdiff_t>(count / 40, 1, 25);
  json out = json::array();
  std::size_t stretch = 0;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    while (i >= stretches[stretch].end) ++stretch;
    const auto [begin, end] = stretches[stretch];
    const std::ptrdiff_t reach = std::min({most, i - begin, end - 1 - i});
    Mean mean(of_rates);
    for (std::ptrdiff_t j = i - reach; j <= i + reach; ++j)
      if (const json& y = column[static_cast<std::size_t>(j)]; y.is_number())
        mean.add(y.get<double>());
    const bool here = column[static_cast<std::size_t>(i)].is_number();
    out.push_back(here ? mean.value() : json(nullptr));
  }
  return out;
}

// The height of a stepped line at `x`: it keeps a point's value until the next point.
json on_the_line(const json& xs, const json& ys, double x) {
  if (xs.empty()) return nullptr;
  std::size_t at = 0;
  while (at + 1 < xs.size() && xs[at + 1].get<double>() <= x) ++at;
  return ys[at];
}

struct Metrics {
  std::vector<double> columns[kCount];
  json evaluations = json::array(), skips = json::array(), rollbacks = json::array();
};

// What an evaluation measured besides the loss, by name.
json measures_in(const json& line) {
  constexpr std::string_view kMark = "val_";
  json out = json::object();
  for (const auto& [key, value] : line.items())
    if (key.starts_with(kMark) && key != "val_loss")
      out[key.substr(kMark.size())] = rounded(number(line, key.c_str()));
  return out;
}

json rollback_in(const json& line) {
  const auto reason = line.find("reason");
  const bool is_said = reason != line.end() && reason->is_string();
  return {rounded(number(line, "from_step")), rounded(number(line, "step")),
          rounded(number(line, "data_to") - number(line, "data_from")),
          is_said ? *reason : json("")};
}

Metrics read(std::string_view text) {
  Metrics m;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const json line = parse_json(text.substr(at, end - at));
    at = end + 1;
    if (!line.is_object() || !(std::abs(number(line, "step")) <= kMostSteps)) continue;
    if (line.contains("val_loss")) {
      m.evaluations.push_back(
          {rounded(number(line, "step")), rounded(number(line, "val_loss")), measures_in(line)});
      continue;
    }
    if (line.contains("rollback")) {
      m.rollbacks.push_back(rollback_in(line));
      continue;
    }
    if (line.contains("trends") || line.contains("alert")) continue;
    for (std::size_t c = 0; c < kCount; ++c)
      m.columns[c].push_back(c == kRate ? rate_in(line) : number(line, kColumns[c]));
    const auto skipped = line.find("skipped");
    if (skipped != line.end() && skipped->is_boolean() && skipped->get<bool>()) {
      const auto culprit = line.find("culprit");
      const bool named = culprit != line.end() && culprit->is_string();
      m.skips.push_back({line["step"], named ? *culprit : json("")});
    }
  }
  return m;
}

}  // namespace

json curves_of(std::string_view metrics, const std::vector<double>& resumes, std::size_t most) {
  Metrics m = read(metrics);
  const std::size_t steps = m.columns[kStep].size();
  const std::size_t group = most ? std::max<std::size_t>(1, (steps + most - 1) / most) : 1;
  json out = {{"steps", steps}, {"group", group}, {"skipped", m.skips.size()}};
  for (std::size_t c = 0; c < kCount; ++c) {
    json& column = out[kColumns[c]] = json::array();
    for (std::size_t i = 0; i < steps; i += group)
      column.push_back(entry(m.columns[c], i, std::min(i + group, steps), c));
  }
  const std::vector<Stretch> stretches = stretches_of(out["step"], resumes);
  for (const std::size_t c : {kLoss, kRate})
    out[std::string(kColumns[c]) + "_smoothed"] =
        centred_means(out[kColumns[c]], stretches, c == kRate);
  const auto first = std::find_if(m.columns[kLoss].begin(), m.columns[kLoss].end(),
                                  [](double x) { return std::isfinite(x); });
  out["first_loss"] = first == m.columns[kLoss].end() ? json(nullptr) : rounded(*first);
  out["last"] = json::object();
  for (const std::size_t c : {kStep, kLoss, kTime})
    out["last"][kColumns[c]] = steps ? rounded(m.columns[c].back()) : json(nullptr);
  if (m.skips.size() > kMostSkips)
    m.skips.erase(m.skips.begin(), m.skips.end() - static_cast<std::ptrdiff_t>(kMostSkips));
  for (json& skip : m.skips)
    skip.push_back(on_the_line(out["step"], out[kColumns[kLossScale]], skip[0].get<double>()));
  out["evaluations"] = std::move(m.evaluations);
  out["skips"] = std::move(m.skips);
  out["rollbacks"] = std::move(m.rollbacks);
  return out;
}

}  // namespace aloft

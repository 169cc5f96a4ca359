#include "observe/report/trends.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "observe/trends/trend_lines.h"
#include "observe/trends/trend_watch.h"

namespace aloft {

using nlohmann::json;

namespace {

using Numbers = std::array<std::optional<double>, kTrendNames.size()>;

// Calls `with` with the lines that have a key.
template <class With>
void each_line(std::string_view text, std::string_view key, const With& with) {
  const std::string mark = "\"" + std::string(key) + "\":";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.find(mark) != std::string_view::npos) with(line);
  }
}

bool has_step(const json& line) {
  const auto step = line.is_object() ? line.find("step") : line.end();
  return step != line.end() && step->is_number();
}

// The larger of two; what is not finite is the largest.
std::optional<double> larger(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::isnan(*a) || std::isnan(*b) ? std::nan("") : std::max(*a, *b);
}

// The looks in groups, a row a layer.
class Table {
 public:
  void add(std::size_t group, const std::vector<LayerTrends>& layers) {
    for (const LayerTrends& t : layers) {
      const auto it = std::ranges::find(names_, t.layer);
      const auto row = static_cast<std::size_t>(it - names_.begin());
      if (it == names_.end()) {
        names_.push_back(t.layer);
        rows_.emplace_back();
      }
      if (rows_[row].size() <= group) rows_[row].resize(group + 1);
      Numbers& to = rows_[row][group];
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = larger(to[i], t.numbers[i]);
    }
  }

  const std::vector<std::string>& names() const { return names_; }
  // A list a layer; empty where no layer ever had the number.
  json number(std::size_t i, std::size_t groups) const {
    json all = json::array();
    bool is_any = false;
    for (const std::vector<Numbers>& row : rows_) {
      json& own = all.emplace_back(json::array());
      for (std::size_t g = 0; g < groups; ++g) {
        const std::optional<double> x = g < row.size() ? row[g][i] : std::nullopt;
        is_any |= x.has_value();
        own.push_back(!x ? json(false) : std::isfinite(*x) ? four_digits(*x) : json(nullptr));
      }
    }
    return is_any ? all : json::array();
  }

 private:
  // More than a colour shows.
  static json four_digits(double x) { return std::stod(fmt::format("{:.4g}", x)); }

  std::vector<std::string> names_;
  std::vector<std::vector<Numbers>> rows_;
};

json text_in(const json& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && it->is_string() ? *it : json("");
}

}  // namespace

json trends_of(std::string_view metrics, const std::string& run, std::size_t most) {
  std::size_t looks = 0;
  each_line(metrics, "trends", [&](std::string_view) { ++looks; });
  const std::size_t size = std::max<std::size_t>(1, (looks + most - 1) / most);
  Table table;
  json steps = json::array();
  std::size_t look = 0;
  each_line(metrics, "trends", [&](std::string_view text) {
    const json line = parse_json(text);
    if (!has_step(line) || !line.contains("trends")) return;
    const std::size_t group = look++ / size;
    if (steps.size() <= group) steps.push_back(nullptr);
    steps[group] = line["step"];
    // Once more, for the order of the layers.
    table.add(group, trends::layers_of(nlohmann::ordered_json::parse(text)["trends"]));
  });
  json out = {{"layers", table.names()}, {"steps", steps}, {"group", size}};
  out["names"] = json::array();
  out["numbers"] = json::object();
  for (std::size_t i = 0; i < kTrendNames.size(); ++i)
    if (json rows = table.number(i, steps.size()); !rows.empty()) {
      out["names"].push_back(kTrendNames[i]);
      out["numbers"][std::string(kTrendNames[i])] = std::move(rows);
    }
  out["alerts"] = json::array();
  out["advice"] = json::object();
  std::size_t alerts = 0;
  each_line(metrics, "alert", [&](std::string_view text) {
    const json line = parse_json(text);
    if (!has_step(line) || !line.contains("alert")) return;
    const json rule = text_in(line, "alert");
    if (++alerts > kMostAlerts) return;
    out["alerts"].push_back({line["step"], rule, text_in(line, "layer"), text_in(line, "text")});
    const auto name = rule.get<std::string>();
    if (!out["advice"].contains(name))  // metrics count steps from 1, the probe from 0
      out["advice"][name] = trends::advice_on(name, run, line["step"].get<std::int64_t>() - 1);
  });
  out["alert_count"] = alerts;
  return out;
}

}  // namespace aloft

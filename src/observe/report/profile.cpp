#include "observe/report/profile.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace aloft {

using nlohmann::json;

namespace {

double number_in(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : 0;
}

std::string text_in(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

json unless_zero(double x) { return x > 0 ? json(x) : json(); }

}  // namespace

json profile_of(std::string_view text) {
  const json file = parse_json(text);
  const json summary = file.is_object() ? file.value("aloft", json()) : json();
  if (!summary.is_object()) return nullptr;
  const json steps = summary.value("steps", json()), ops = summary.value("ops", json());
  if (!steps.is_array() || steps.empty() || !ops.is_array()) return nullptr;
  const auto n = static_cast<double>(steps.size());
  double all = 0;
  for (const json& op : ops)
    if (op.is_object()) all += number_in(op, "ms");
  json rows = json::array();
  for (const json& op : ops) {
    const double ms = op.is_object() ? number_in(op, "ms") : 0;
    if (ms <= 0) continue;
    const bool has_products = op.value("has_products", json()) == true;
    rows.push_back({text_in(op, "op"), text_in(op, "phase"), number_in(op, "calls") / n, ms / n,
                    ms / all,
                    has_products ? unless_zero(number_in(op, "flops") / ms / 1e6) : json(),
                    unless_zero(number_in(op, "bytes") / ms / 1e6),
                    unless_zero(number_in(op, "ms_at_rates") / ms)});
  }
  return {{"ops", std::move(rows)},
          {"steps", steps.size()},
          {"device", text_in(summary, "device")},
          {"threads", number_in(summary, "threads")}};
}

}  // namespace aloft

#include "observe/trends/trend_lines.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace aloft::trends {

using Json = nlohmann::ordered_json;

namespace {

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

template <class Any>
std::vector<LayerTrends> layers_in(const Any& trends) {
  std::vector<LayerTrends> layers;
  if (!trends.is_object()) return layers;
  for (const auto& [name, own] : trends.items()) {
    if (!own.is_object()) continue;
    LayerTrends& t = layers.emplace_back();
    t.layer = name;
    for (std::size_t i = 0; i < kTrendNames.size(); ++i)
      if (const auto it = own.find(std::string(kTrendNames[i])); it != own.end())
        if (it->is_number() || it->is_null())
          t.numbers[i] = it->is_number() ? it->template get<double>()
                                         : std::numeric_limits<double>::quiet_NaN();
  }
  return layers;
}

}  // namespace

Json line_of(std::int64_t step, const std::vector<LayerTrends>& layers) {
  Json all = Json::object();
  for (const LayerTrends& t : layers) {
    Json& own = all[t.layer] = Json::object();
    for (std::size_t i = 0; i < kTrendNames.size(); ++i)
      if (t.numbers[i]) own[std::string(kTrendNames[i])] = number(*t.numbers[i]);
  }
  return {{"step", step}, {"trends", std::move(all)}};
}

Json line_of(std::int64_t step, const TrendAlert& alert) {
  Json line = {{"step", step}, {"alert", alert.rule}};
  if (!alert.layer.empty()) line["layer"] = alert.layer;
  line["value"] = number(alert.value);
  line["text"] = alert.text;
  return line;
}

std::vector<LayerTrends> layers_of(const nlohmann::json& trends) { return layers_in(trends); }
std::vector<LayerTrends> layers_of(const Json& trends) { return layers_in(trends); }

}  // namespace aloft::trends

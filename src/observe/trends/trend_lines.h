// Trends and alerts as lines of metrics.jsonl, and back: docs/metrics.md.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "types/trends.h"

namespace aloft::trends {

// {"step": 32, "trends": {"h.0.mlp": {"grad_norm": 0.12, ...}, ...}}; what is not finite is null.
nlohmann::ordered_json line_of(std::int64_t step, const std::vector<LayerTrends>& layers);
// {"step": 32, "alert": "norm_jump", "layer": "h.0.mlp", "value": 1.9, "text": "..."}
nlohmann::ordered_json line_of(std::int64_t step, const TrendAlert& alert);

// The layers of such a line's "trends", without the counts of exponents, which no line has. Of any
// JSON: what it does not know is left out. They have the order of the JSON.
std::vector<LayerTrends> layers_of(const nlohmann::json& trends);
std::vector<LayerTrends> layers_of(const nlohmann::ordered_json& trends);

}  // namespace aloft::trends

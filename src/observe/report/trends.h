// The monitor's lines of metrics.jsonl (docs/trends.md) as a table, small enough for a page.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace aloft {

// `layers`, in the order in which their calls end; `steps` that were looked at; `numbers`: by name
// a list a layer of a value a step: null where it is not finite, false where the layer has none.
// More than `most` looks are gathered into groups of equal size, which stand at their last step,
// with the largest value of each number. `alerts`: [step, rule, layer, text], the first kMostAlerts
// of `alert_count`; `advice`: what to do, by rule, in the run's folder `run`
// and where it was raised first. Lines that are not JSON are left out.
nlohmann::json trends_of(std::string_view metrics, const std::string& run, std::size_t most = 120);

inline constexpr std::size_t kMostAlerts = 1000;

}  // namespace aloft

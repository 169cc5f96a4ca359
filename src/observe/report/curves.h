// metrics.jsonl as columns, short enough for a page.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace aloft {

// Columns of equal length: step, loss, lr, grad_norm, loss_scale, tokens_per_s, time_s; and lists
// `evaluations` [[step, loss]], `skips` [[step, culprit]]. A number that was not finite is null.
// More than `most` steps are gathered into groups of equal size: means of losses, norms and rates,
// the last of everything else; every evaluation stays, and the newest kMostSkips skips. Lines that
// are not JSON (a crash cut them short) are left out.
nlohmann::json curves_of(std::string_view metrics, std::size_t most = 2000);

inline constexpr std::size_t kMostSkips = 1000;

}  // namespace aloft

// metrics.jsonl as columns, short enough for a page.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace aloft {

// Columns of equal length: step, loss, lr, grad_norm, loss_scale, rate, time_s, and
// loss_smoothed, rate_smoothed (rate: tokens or examples a second): means over centred windows,
// which neither lag nor lead. Lists `evaluations` [[step, loss, {"accuracy": 0.98, ...}]] and
// `skips` [[step, culprit, height on the curve of loss_scale]] and `rollbacks` [[from step, to
// step, examples passed over, reason]]; `last` with step, loss and time_s of the very last step. A
// number that was not finite is null. More than `most` steps are gathered into groups of equal
// size, which stand at their middle: means, but the last of loss_scale and time_s; every evaluation
// stays, and the newest kMostSkips skips. Lines that are not JSON (a crash cut them short) are left
// out. `resumes`: the steps behind which the run was gone on with; no window reaches across one.
nlohmann::json curves_of(std::string_view metrics, const std::vector<double>& resumes = {},
                         std::size_t most = 2000);

inline constexpr std::size_t kMostSkips = 1000;

}  // namespace aloft

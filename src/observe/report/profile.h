// The table of a run's profile.json (docs/profile.md), for a page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace aloft {

// `ops`: [op, phase, calls a step, ms a step, share, GFLOP/s or null, GB/s, share of what the rates
// would need or null], longest first; `steps`: how many; device, threads. Null for a text that is
// no such file.
nlohmann::json profile_of(std::string_view text);

}  // namespace aloft

// Time: seconds for measuring, a timestamp for files.
#pragma once

#include <ctime>
#include <string>

namespace aloft {

// Seconds from an arbitrary start; never goes back.
double monotonic_seconds();

// ISO 8601 in UTC, to the second: 2026-11-21T01:02:44Z.
std::string utc_timestamp();
std::string utc_timestamp(std::time_t seconds_since_epoch);

}  // namespace aloft

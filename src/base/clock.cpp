#include "base/clock.h"

#include <chrono>

namespace aloft {

double monotonic_seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

std::string utc_timestamp(std::time_t seconds_since_epoch) {
  std::tm parts{};
  gmtime_r(&seconds_since_epoch, &parts);
  char text[32];
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, n);
}

std::string utc_timestamp() { return utc_timestamp(std::time(nullptr)); }

}  // namespace aloft

#include "observe/config_check/finding.h"

#include <algorithm>

namespace aloft::config_check {

std::string_view name_of(Level level) {
  constexpr std::string_view kNames[] = {"pass", "warning", "error"};
  return kNames[static_cast<int>(level)];
}

Level Section::level() const {
  Level worst = Level::Pass;
  for (const Finding& f : findings) worst = std::max(worst, f.level);
  return worst;
}

Level verdict(const std::vector<Section>& sections) {
  Level worst = Level::Pass;
  for (const Section& s : sections) worst = std::max(worst, s.level());
  return worst;
}

}  // namespace aloft::config_check

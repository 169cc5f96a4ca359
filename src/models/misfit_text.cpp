#include "models/misfit_text.h"

namespace aloft::models {

std::string text_of(const Misfit& misfit, const SettingValues& settings,
                    const std::function<std::string(std::string_view key)>& from) {
  std::string out;
  std::string_view rest = misfit.text;
  for (auto open = rest.find('{'); open != std::string_view::npos; open = rest.find('{')) {
    const auto close = rest.find('}', open);
    if (close == std::string_view::npos) break;  // no key: as it is
    out += rest.substr(0, open);
    const std::string_view key = rest.substr(open + 1, close - open - 1);
    const auto value = settings.find(key);
    if (key.starts_with('?')) {
      if (from) out += from(key.substr(1));
    } else {
      out += value != settings.end() ? str(value->second) : rest.substr(open, close + 1 - open);
    }
    rest.remove_prefix(close + 1);
  }
  return out += rest;
}

}  // namespace aloft::models

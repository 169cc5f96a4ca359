// What a file of settings tells, as tests ask for it.
#pragma once

#include <string>

#include "observe/config_check/setting_values.h"
#include "observe/config_check/settings_file.h"

namespace aloft::config_check {

inline std::string value_of(const Side& side, const std::string& key) {
  for (const Setting& s : side.settings.at("static"))
    if (s.key == key) return value_text(s);
  return "nothing";
}

inline Side script(const std::string& text) { return parse_settings(text, "a.sh"); }
inline std::string option(const std::string& text, const std::string& key) {
  return value_of(script(text), key);
}

}  // namespace aloft::config_check

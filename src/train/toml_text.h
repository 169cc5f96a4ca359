// TOML of any bytes. toml++ 3.3 has undefined behaviour on many letters beyond ASCII that stand
// where TOML allows none, so such a text never reaches it.
#pragma once

#include <toml++/toml.h>

#include <string_view>

namespace aloft {

// The line, from 1, of the first byte beyond ASCII that stands outside strings and comments, where
// TOML allows none; 0 where there is none. Exact for valid TOML; for a message, not for safety.
int line_of_stray_unicode(std::string_view toml);

// toml::parse for every text; throws toml::parse_error.
toml::table parse_toml(std::string_view text, std::string_view name = {});

}  // namespace aloft

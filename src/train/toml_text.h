// What must hold of a text before the TOML library may see it.
#pragma once

#include <string_view>

namespace aloft {

// The line, from 1, of the first byte beyond ASCII that stands outside strings and comments, where
// TOML allows none; 0 where there is none. Some releases of toml++ have undefined behaviour there.
int line_of_stray_unicode(std::string_view toml);

}  // namespace aloft

// TOML of any bytes, through toml++, which this header alone includes: release 3.3 has undefined
// behaviour on many letters beyond ASCII that stand where TOML allows none, so such a text never
// reaches it; and where its assertions fail, in release builds too, an exception follows.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace aloft {
// Where a text is not TOML; the line is 1 or more, or 0 where it is not known.
struct TomlError : std::runtime_error {
  TomlError(int line, const std::string& what) : std::runtime_error(what), line(line) {}
  int line;
};
[[noreturn]] void fail_toml_assertion();
}  // namespace aloft

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(holds) ((holds) ? static_cast<void>(0) : ::aloft::fail_toml_assertion())
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace aloft {

// The line, from 1, of the first byte beyond ASCII that stands outside strings and comments, where
// TOML allows none; 0 where there is none. Exact for valid TOML; for a message, not for safety.
int line_of_stray_unicode(std::string_view toml);

// toml::parse for every text; throws TomlError.
toml::table parse_toml(std::string_view text, std::string_view name = {});

}  // namespace aloft

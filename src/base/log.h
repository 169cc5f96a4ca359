// Talk to the person at the terminal, on stderr, a line at a time. Results go to stdout and never
// through here.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace aloft {

enum class LogLevel { Error, Warning, Info, Debug };

// What is more detailed than `level` is dropped. Info at start; `--quiet` sets Error.
void set_log_level(LogLevel level);
LogLevel log_level();

// One line, written whole even when several threads talk. "warning: " or "error: " stands before
// the text of those levels.
void log_line(LogLevel level, std::string_view text);

template <class... Args>
void log_error(fmt::format_string<Args...> form, Args&&... args) {
  log_line(LogLevel::Error, fmt::format(form, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> form, Args&&... args) {
  log_line(LogLevel::Warning, fmt::format(form, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> form, Args&&... args) {
  log_line(LogLevel::Info, fmt::format(form, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> form, Args&&... args) {
  log_line(LogLevel::Debug, fmt::format(form, std::forward<Args>(args)...));
}

}  // namespace aloft

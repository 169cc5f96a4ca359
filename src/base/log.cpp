#include "base/log.h"

#include <atomic>
#include <string>

#include "base/output.h"
#include "base/terminal.h"

namespace aloft {
namespace {
std::atomic<LogLevel> current{LogLevel::Info};
}  // namespace

void set_log_level(LogLevel level) { current = level; }
LogLevel log_level() { return current; }

void log_line(LogLevel level, std::string_view text) {
  if (level > current) return;
  std::string line;
  if (level == LogLevel::Error) line = "error: ";
  if (level == LogLevel::Warning) line = "warning: ";
  line = fit_for(Output::Err, line.append(text));
  line += '\n';
  print_talk(std::string_view(line));  // one call: stdio locks it
}

}  // namespace aloft

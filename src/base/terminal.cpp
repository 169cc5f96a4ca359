#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace aloft {

bool is_terminal(Output output) { return ::isatty(static_cast<int>(output)) == 1; }

int terminal_width(Output output) {
  winsize size{};
  const bool known = ::ioctl(static_cast<int>(output), TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace aloft

// Words of a dump that somebody else has written, for a terminal.
#pragma once

#include <string>
#include <string_view>

#include "base/terminal.h"

namespace aloft::cli {

// On one line, and with nothing that a terminal would obey: a line break of a name would else begin
// a line that reads like one of ours.
inline std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : harmless(text)) {
    if (c == '\n')
      line += "\\n";
    else if (c == '\t')
      line += "\\t";
    else
      line += c;
  }
  return line;
}

}  // namespace aloft::cli

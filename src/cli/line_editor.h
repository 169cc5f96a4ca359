// Lines that are edited at a terminal: arrows, history, pastes of several lines.
#pragma once

#include <memory>

#include "cli/said_lines.h"

namespace aloft::cli {

// Lines of stdin, a terminal, shown at `terminal`, a descriptor of it that can be written to. A
// line has any length; what a terminal pastes as one text is one line, whatever ends are in it.
// Of keys that mean nothing here nothing is said to the model.
std::unique_ptr<SaidLines> edited_lines(int terminal);

}  // namespace aloft::cli

// What a stream is connected to.
#pragma once

namespace aloft {

enum class Output { Out = 1, Err = 2 };

bool is_terminal(Output output);

// Columns of the terminal, or 80 where there is none.
int terminal_width(Output output);

}  // namespace aloft

// What a stream is connected to, and text that is fit to be shown there.
#pragma once

#include <string>
#include <string_view>

namespace aloft {

enum class Output { Out = 1, Err = 2 };

bool is_terminal(Output output);

// Columns of the terminal, or 80 where there is none.
int terminal_width(Output output);

// `text` as one word of a POSIX shell, plain or in quotes, or as bash's $'...' where it holds
// control characters: pasted behind a command it is the same text, and nothing in it moves a
// cursor.
std::string in_shell(std::string_view text);

// `text` with its control characters as \xNN, so that it cannot command a terminal; line ends and
// tabs stay.
std::string harmless(std::string_view text);

}  // namespace aloft

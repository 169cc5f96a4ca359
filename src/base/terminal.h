// What a stream is connected to, and text that is fit to be shown there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace aloft {

enum class Output { Out = 1, Err = 2 };

bool is_terminal(Output output);

// Columns of the terminal, or 80 where there is none.
int terminal_width(Output output);

// Columns that a text takes: one a character.
std::size_t columns_of(std::string_view text);

// `text` in lines of at most `width` columns: cut at spaces, else behind a sign that ends a part of
// a name, else anywhere.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

// Lines, those that are wider than `width` wrapped: what goes on stands below what is behind the
// line's label ("  saw   text"), or two columns further in than the line.
std::string hanging(std::string_view text, std::size_t width);
// The same for a terminal; a pipe or a file gets the text as it is.
std::string fit_for(Output output, std::string_view text);

// `text` as one word of a POSIX shell, plain or in quotes, or as bash's $'...' where it holds
// control characters: pasted behind a command it is the same text, and nothing in it moves a
// cursor.
std::string in_shell(std::string_view text);

// `text` with its control characters as \xNN, so that it cannot command a terminal; line ends and
// tabs stay.
std::string harmless(std::string_view text);

}  // namespace aloft

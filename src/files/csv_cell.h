// A cell of a table in comma-separated values (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace aloft {

// In quotes where it holds a comma, a quote or the end of a line. What a program of tables would
// compute (=A1, +1+2, @SUM) has a ' in front: names in a table are those that somebody else has
// written. Numbers stay as they are.
std::string csv_cell(std::string_view text);

}  // namespace aloft

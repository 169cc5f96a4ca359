// Columns for people: what a verb prints where --json is not given.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace aloft::cli {

// Rows as lines, columns padded to their widest cell; the first row is the head, underlined. Where
// that is wider than `width` columns, the last column gets narrower, then the widest, and their
// cells go on in the next line. The last column is not padded. `is_first_whole`: the first column
// stays as wide as it is, for names that are looked for and copied.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t width,
                  bool is_first_whole = false);

// The same for stdout: as wide as its terminal, or 100 columns where it is none.
std::string table(const std::vector<std::vector<std::string>>& rows);
std::string table_of_names(
    const std::vector<std::vector<std::string>>& rows);  // first column whole

// Lines of text, each cut where it is wider than stdout's (as above); what goes on stands two
// columns further in than the line began.
std::string fitted(std::string_view text);
std::string fitted(std::string_view text, std::size_t width);

}  // namespace aloft::cli

// Columns for people: what a verb prints where --json is not given.
#pragma once

#include <string>
#include <vector>

namespace aloft::cli {

// Rows as lines, columns padded to their widest cell; the first row is the head, underlined. The
// last column is not padded.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace aloft::cli

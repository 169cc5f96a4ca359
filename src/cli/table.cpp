#include "cli/table.h"

#include <algorithm>

namespace aloft::cli {

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c == width.size()) width.push_back(0);
      width[c] = std::max(width[c], row[c].size());
    }
  std::string out;
  const auto add = [&](const std::vector<std::string>& row) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      out += row[c];
      if (c + 1 < row.size()) out.append(width[c] - row[c].size() + 2, ' ');
    }
    out += '\n';
  };
  for (std::size_t r = 0; r < rows.size(); ++r) {
    add(rows[r]);
    if (r > 0) continue;
    std::vector<std::string> line;
    line.reserve(width.size());
    for (std::size_t w : width) line.emplace_back(w, '-');
    add(line);
  }
  return out;
}

}  // namespace aloft::cli

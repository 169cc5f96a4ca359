#include "cli/table.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "base/terminal.h"
#include "base/text.h"

namespace aloft::cli {
namespace {

using Row = std::vector<std::string>;

constexpr std::size_t kGap = 2, kPlainWidth = 100;
constexpr std::size_t kNarrowest = 12;  // no column is cut to less
// The last column holds words and gives way first, as far as they read well.
constexpr std::size_t kNarrowWords = 30;

std::vector<std::size_t> widths_of(const std::vector<Row>& rows, std::size_t most,
                                   bool is_first_whole) {
  std::vector<std::size_t> width;
  for (const Row& row : rows) {
    if (row.size() > width.size()) width.resize(row.size());
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], columns_of(row[c]));
  }
  if (width.empty()) return width;
  const auto total = [&] {
    return std::accumulate(width.begin(), width.end(), kGap * (width.size() - 1));
  };
  if (const std::size_t sum = total(); sum > most && width.back() > kNarrowWords)
    width.back() -= std::min(width.back() - kNarrowWords, sum - most);
  for (std::size_t sum = total(); sum > most; sum = total()) {
    const auto widest = std::max_element(width.begin() + (is_first_whole ? 1 : 0), width.end());
    if (widest == width.end() || *widest <= kNarrowest) break;
    // Down to the next widest, or as far as is needed.
    std::size_t next = kNarrowest;
    for (auto w = width.begin() + (is_first_whole ? 1 : 0); w != width.end(); ++w)
      if (*w < *widest) next = std::max(next, *w);
    *widest -= std::min(std::max<std::size_t>(*widest - next, 1), sum - most);
  }
  return width;
}

void add_row(const Row& row, const std::vector<std::size_t>& width, std::string& out) {
  std::vector<std::vector<std::string>> cells;
  std::size_t lines = 1;
  for (std::size_t c = 0; c < row.size(); ++c) {
    cells.push_back(wrapped(row[c], width[c]));
    lines = std::max(lines, cells.back().size());
  }
  for (std::size_t l = 0; l < lines; ++l) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string text = l < cells[c].size() ? cells[c][l] : "";
      line += text;
      if (c + 1 < cells.size()) line.append(width[c] - columns_of(text) + kGap, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
}

}  // namespace

std::string table(const std::vector<Row>& rows, std::size_t width, bool is_first_whole) {
  const std::vector<std::size_t> widths = widths_of(rows, width, is_first_whole);
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    add_row(rows[r], widths, out);
    if (r > 0) continue;
    Row line;
    line.reserve(widths.size());
    for (const std::size_t w : widths) line.emplace_back(w, '-');
    add_row(line, widths, out);
  }
  return out;
}

namespace {
std::size_t width_of_stdout() {
  return is_terminal(Output::Out) ? static_cast<std::size_t>(terminal_width(Output::Out))
                                  : kPlainWidth;
}
}  // namespace

std::string table(const std::vector<Row>& rows) { return table(rows, width_of_stdout()); }

std::string table_of_names(const std::vector<Row>& rows) {
  return table(rows, width_of_stdout(), true);
}

std::string fitted(std::string_view text, std::size_t width) {
  std::string out;
  for (std::string_view line : split(text, '\n')) {
    if (columns_of(line) <= width) {
      out.append(line) += '\n';
      continue;
    }
    const std::size_t margin = std::min(line.find_first_not_of(' '), width / 2);
    const std::size_t inner = width - std::min(margin + kGap, width / 2);
    bool is_first = true;
    for (const std::string& piece : wrapped(line.substr(margin), inner)) {
      out.append(is_first ? margin : margin + kGap, ' ').append(piece) += '\n';
      is_first = false;
    }
  }
  if (!text.ends_with('\n') && !out.empty()) out.pop_back();
  if (text.ends_with('\n')) out.pop_back();  // what stands behind the last line's end is no line
  return out;
}

std::string fitted(std::string_view text) { return fitted(text, width_of_stdout()); }

}  // namespace aloft::cli

// Workbooks (.xlsx) of plain tables, through libxlsxwriter.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace aloft {

enum class XlsxFill { None, Green, Yellow, Red };

struct XlsxSheet {
  std::string name;  // at most 31 characters, its own, without []:*?/ and backslash
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // what parses as a finite number is one
  std::vector<std::size_t> text_columns = {};  // where numbers stay text: names, versions, shapes
  // Colours of cells, by row and column.
  std::map<std::pair<std::size_t, std::size_t>, XlsxFill> fills = {};
};

// Sheets in their order; where one has more rows than a sheet holds, it goes on in NAME_part_1 and
// so on. Cells beyond 32,767 characters are cut, as the format wants it, and characters that it
// cannot have are others (blanks, U+FFFD): whatever the texts, the book opens. The file is whole or
// not there. EnvironmentError E0603.
void write_xlsx(const Path& path, const std::vector<XlsxSheet>& sheets);

}  // namespace aloft

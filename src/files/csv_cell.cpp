#include "files/csv_cell.h"

#include "base/text.h"

namespace aloft {

namespace {

bool is_formula(std::string_view cell) {
  if (cell.empty() || std::string_view("=@+-\t\r").find(cell[0]) == std::string_view::npos)
    return false;
  return !parse_double(cell) && lower(cell) != "-inf";
}

}  // namespace

std::string csv_cell(std::string_view text) {
  std::string plain = is_formula(text) ? "'" : "";
  plain += text;
  if (plain.find_first_of(",\"\n\r") == std::string::npos) return plain;
  std::string out = "\"";
  for (const char c : plain) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace aloft

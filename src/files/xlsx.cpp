#include "files/xlsx.h"

#include <unistd.h>
#include <xlsxwriter.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace aloft {

namespace {

// Of the format: rows of a sheet, its head included; characters of a cell.
constexpr std::size_t kMostRows = 1'048'576, kMostCharacters = 32'767;

// A cell's text as the format takes it: UTF-8, cut between characters, without what XML cannot
// have: control characters are blanks, U+FFFE and U+FFFF the sign for what is no character.
std::string cell_text(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? ' ' : c;
  if (!is_utf8(out))
    std::ranges::replace_if(
        out, [](char c) { return static_cast<unsigned char>(c) > 126; }, '?');
  for (std::size_t at = 0; (at = out.find("\xef\xbf", at)) != std::string::npos; at += 2)
    if (at + 2 < out.size() && static_cast<unsigned char>(out[at + 2]) > 0xbd) out[at + 2] = '\xbd';
  if (out.size() > kMostCharacters) {
    std::size_t end = kMostCharacters;
    while ((static_cast<unsigned char>(out[end]) & 0xc0) == 0x80) --end;
    out.resize(end);
  }
  return out;
}

class Book {
 public:
  explicit Book(const Path& file) {
    // A row that is done is written and let go: tables of dumps have hundreds of thousands.
    lxw_workbook_options options{};
    options.constant_memory = LXW_TRUE;
    book_ = workbook_new_opt(system_path(file), &options);
    if (!book_) return;
    head_ = workbook_add_format(book_);
    format_set_bold(head_);
    constexpr lxw_color_t kColours[] = {0xC6EFCE, 0xFFEB9C, 0xFF9999};
    for (std::size_t i = 0; i < std::size(kColours); ++i) {
      fills_[i] = workbook_add_format(book_);
      format_set_bg_color(fills_[i], kColours[i]);
    }
  }
  Book(const Book&) = delete;
  Book& operator=(const Book&) = delete;
  ~Book() { static_cast<void>(close()); }

  bool close() {
    lxw_workbook* const book = std::exchange(book_, nullptr);
    return book && workbook_close(book) == LXW_NO_ERROR && is_whole_;
  }

  void add(const XlsxSheet& s) {
    const std::size_t parts = s.rows.empty() ? 1 : (s.rows.size() - 1) / (kMostRows - 1) + 1;
    for (std::size_t part = 0; part < parts; ++part)
      add_part(s, parts == 1 ? s.name : s.name + "_part_" + std::to_string(part),
               part * (kMostRows - 1));
  }

 private:
  void add_part(const XlsxSheet& s, const std::string& name, std::size_t first) {
    lxw_worksheet* const sheet = book_ ? workbook_add_worksheet(book_, name.c_str()) : nullptr;
    if (!sheet) {
      is_whole_ = false;
      return;
    }
    worksheet_freeze_panes(sheet, 1, 0);
    for (std::size_t c = 0; c < s.columns.size(); ++c) put_text(sheet, 0, c, s.columns[c], head_);
    const std::size_t end = std::min(s.rows.size(), first + kMostRows - 1);
    for (std::size_t r = first; r < end; ++r)
      for (std::size_t c = 0; c < s.rows[r].size(); ++c) {
        const auto fill = s.fills.find({r, c});
        lxw_format* const format = fill == s.fills.end() || fill->second == XlsxFill::None
                                       ? nullptr
                                       : fills_[static_cast<std::size_t>(fill->second) - 1];
        const bool is_text = std::ranges::find(s.text_columns, c) != s.text_columns.end();
        const auto number = is_text ? std::nullopt : parse_double(s.rows[r][c]);
        const auto row = static_cast<lxw_row_t>(r - first + 1);
        if (number && std::isfinite(*number))
          check(worksheet_write_number(sheet, row, static_cast<lxw_col_t>(c), *number, format));
        else
          put_text(sheet, row, c, s.rows[r][c], format);
      }
  }
  void put_text(lxw_worksheet* sheet, lxw_row_t row, std::size_t column, const std::string& text,
                lxw_format* format) {
    check(worksheet_write_string(sheet, row, static_cast<lxw_col_t>(column),
                                 cell_text(text).c_str(), format));
  }
  void check(lxw_error error) { is_whole_ = is_whole_ && error == LXW_NO_ERROR; }

  lxw_workbook* book_ = nullptr;
  lxw_format* head_ = nullptr;
  lxw_format* fills_[3] = {};
  bool is_whole_ = true;
};

}  // namespace

void write_xlsx(const Path& path, const std::vector<XlsxSheet>& sheets) {
  // The library writes to a name: to one beside the file, which takes its place when it is whole.
  const Path temporary = path.string() + ".part-" + std::to_string(getpid());
  Book book(temporary);
  for (const XlsxSheet& s : sheets) book.add(s);
  if (!book.close()) {
    unlink(system_path(temporary));
    throw EnvironmentError("E0603", "a file cannot be written").at(path.string());
  }
  rename_durably(temporary, path);
}

}  // namespace aloft

// Workbooks: what their cells hold, whatever text they are given.
#include "files/xlsx.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "files/zip_files.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

std::string sheet_of(const XlsxSheet& sheet) {
  const TemporaryFolder folder;
  write_xlsx(folder / "a.xlsx", {sheet});
  const std::string book = read_file(folder / "a.xlsx");
  return read_zip(std::as_bytes(std::span(book)), 1 << 20).at("xl/worksheets/sheet1.xml");
}

// XML has no place for most control characters and for U+FFFE and U+FFFF: with one of them no
// program opens the book.
TEST(Xlsx, CellsHaveWhatXmlTakes) {
  std::string controls;
  for (char c = 1; c < ' '; ++c) controls += c;
  const std::string last = "\xef\xbf\xbe\xef\xbf\xbf|\xef\xbf\xbd\xf0\x9f\x98\x80";
  const std::string xml = sheet_of({"s",
                                    {"head " + last},
                                    {{"cell " + last},
                                     {controls},
                                     {std::string("\0", 1)},
                                     {"no UTF-8: \xef\xbf"},
                                     {"\xed\xa0\x80"}}});
  EXPECT_EQ(xml.find("\xef\xbf\xbe"), std::string::npos);
  EXPECT_EQ(xml.find("\xef\xbf\xbf"), std::string::npos);
  const std::string instead = "\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xf0\x9f\x98\x80";
  EXPECT_NE(xml.find("head " + instead), std::string::npos);
  EXPECT_NE(xml.find("cell " + instead), std::string::npos);
  EXPECT_NE(xml.find("no UTF-8: ??"), std::string::npos);
  EXPECT_TRUE(std::ranges::none_of(xml, [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t';
  }));
}

}  // namespace
}  // namespace aloft

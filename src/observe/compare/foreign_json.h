// JSON that other programs wrote, as large as dumps are: members stay in the order in which they
// stand in the file, which is that of execution, and NaN and Infinity as Python writes them are
// taken for the words "nan" and "inf".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aloft::compare {

struct ForeignJson {
  enum class Kind { Null, Bool, Number, Text, List, Object };

  Kind kind = Kind::Null;
  bool is_whole = false;           // of a number, whether it was written without a fraction
  double number = 0;               // of a number; of true, 1
  std::string text = {};           // of a text; of a number, as it is to be shown
  std::vector<ForeignJson> items;  // of a list, and of an object
  std::vector<std::string> keys;   // of an object, one an item

  // The member of that name, the last where there are several; null where there is none or this is
  // no object.
  const ForeignJson* find(std::string_view key) const;
  // The text of a member; "" where it is none.
  std::string_view text_of(std::string_view key) const;
};

// The value of a file's text. `name` is for messages. DataError E0650 where it is not JSON, with
// the line, or nests deeper than kDeepestJson.
ForeignJson parse_foreign_json(std::string_view text, const std::string& name);

}  // namespace aloft::compare

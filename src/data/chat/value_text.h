// Values as text: what `{{ x }}` prints, and what the filter `tojson` does.
#pragma once

#include <string>

#include "data/chat/value.h"

namespace aloft::chat {

// Python's str(): a string as it is, None, True, 1.0, ['a', 1]; nothing of what is undefined.
// Failure for what Python shows by its place in memory, and for characters of a list's strings of
// which it depends on Python's tables whether they are shown as they are.
std::string to_text(const Value& value, Work& work);

// Of Python's json.dumps, as transformers calls it.
struct JsonForm {
  bool is_ascii = false;   // other characters as \uXXXX
  bool is_sorted = false;  // keys by their text
  std::string indent;      // of a level, where is_broken
  bool is_broken = false;  // a line for each item
  std::string between = ", ", behind_key = ": ";
};
// Failure for what JSON does not have.
std::string to_json(const Value& value, const JsonForm& form, Work& work);

}  // namespace aloft::chat

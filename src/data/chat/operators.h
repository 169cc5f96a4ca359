// What operators do to values, as in Python. Failure where Python has no such operation, where a
// whole number would leave 64 bits, and for `%` of text, which is not done here.
#pragma once

#include <string_view>

#include "data/chat/value.h"

namespace aloft::chat {

// `text`: + - * / // % **
Value operation(std::string_view text, const Value& a, const Value& b, Work& work);
Value with_sign(std::string_view text, const Value& value);
// `text`: == != < <= > >= in, not in
bool compare(std::string_view text, const Value& a, const Value& b, Work& work);

// value[key], as Jinja looks things up: an item, else an attribute, else undefined.
Value item_of(const Value& value, const Value& key);
// value[begin:end:step], each of which may be none.
Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step,
               Work& work);
// value.name, as Jinja looks things up: an attribute, else an item, else undefined.
Value attribute_of(const Value& value, std::string_view name);

}  // namespace aloft::chat

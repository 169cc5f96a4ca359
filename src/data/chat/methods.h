// Methods of strings, dictionaries and lists, as Python has them, and what of a value Python has
// and is refused here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/chat/value.h"

namespace aloft::chat {

// A function of the value; undefined where Python's values of its type have no such attribute.
// Failure where they have one that is not done here, or that changes the value.
Value method_of(const Value& value, std::string_view name);

// What several methods and filters do. Python's strip(), lstrip() and rstrip(); `set`: the
// characters that go, null: white space.
enum class Side { Both, Before, Behind };
std::string stripped(std::string_view text, Side side, const std::string* set);
// Python's splitlines().
std::vector<std::string_view> lines_of(std::string_view text);
// Python's replace; `most` below zero: all.
std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     std::int64_t most, Work& work);
enum class Case { Upper, Lower, Capital, Title };
// Failure where it is not ASCII: what else there is in Unicode is not done here.
std::string in_case(const std::string& text, Case letters);

}  // namespace aloft::chat

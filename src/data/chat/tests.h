// The tests: `value is name(arguments)`.
#pragma once

#include <string>
#include <string_view>

#include "data/chat/callable.h"

namespace aloft::chat {

struct Test {
  std::string_view name;
  bool (*holds)(const Value& value, const Given& given, Work& work);
};

// Null where there is none of the name.
const Test* find_test(std::string_view name);
std::string names_of_tests();

}  // namespace aloft::chat

// The filters: `value|name(arguments)`.
#pragma once

#include <string>
#include <string_view>

#include "data/chat/callable.h"

namespace aloft::chat {

struct Filter {
  std::string_view name;
  Value (*apply)(const Value& value, const Given& given, Work& work);
};

// Null where there is none of the name.
const Filter* find_filter(std::string_view name);
std::string names_of_filters();

}  // namespace aloft::chat

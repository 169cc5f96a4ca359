// What every template may call by name: namespace, dict, range, raise_exception, strftime_now.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "data/chat/value.h"

namespace aloft::chat {

// raise_exception(message): the template's own refusal of a conversation.
struct Raised {
  std::string message;
};

// What the functions of a rendering share.
struct Surroundings {
  std::int64_t now = 0;  // seconds since 1970, for strftime_now, which shows local time
  std::deque<Namespace> spaces = {};  // all that were made
};

// Undefined where there is none of the name. Failure for one that Jinja has and that is not done
// here. `around` outlives what is called.
Value function_of(std::string_view name, Surroundings& around);

}  // namespace aloft::chat

// What is wrong with a text that is no JSON, for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace aloft {

struct JsonMistake {
  std::size_t byte = 0;  // where it stops being JSON; the text's size where it ends too soon
  std::string why;       // "invalid literal"
};

// Of a text that parse_json() (json.h) gives no value of. Never throws, for any bytes.
JsonMistake json_mistake(std::string_view text);

}  // namespace aloft

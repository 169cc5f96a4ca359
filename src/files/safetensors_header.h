// The JSON of a safetensors file's header, read strictly: no name twice, no unknown field, no
// nesting beyond the format's own, whole non-negative numbers. Sizes are not judged here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace aloft {

struct SafetensorsHeader {
  struct Entry {
    std::string name, dtype;
    std::vector<std::uint64_t> shape;
    std::uint64_t begin = 0, end = 0;
  };
  std::vector<Entry> entries;  // in the order of the text
  std::map<std::string, std::string> metadata;
  std::string mistake;  // what is wrong with the text; empty: nothing
};

SafetensorsHeader parse_safetensors_header(std::string_view text);

}  // namespace aloft

// YAML of any bytes, through yaml-cpp: the value as JSON has it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace aloft {

// Where a text is not YAML, nests deeper than kDeepestJson, or names its own parts so often that
// what it stands for is beyond measure; the line is 1 or more, or 0 where it is not known.
struct YamlError : std::runtime_error {
  YamlError(int line, const std::string& what) : std::runtime_error(what), line(line) {}
  int line;
};

// The value of the one document: mappings with their keys as texts, in the order of the text; "<<"
// takes over what a mapping lacks; plain words that are numbers, true, false or null are these
// (.inf and .nan, which JSON has not, among the numbers, and what YAML 1.1 has, 017, 1_000, 1:30
// and 0b11; inf is a word), what stands in quotes is text, and so are whole numbers beyond 64 bits;
// of an empty text null. Throws YamlError for everything else, a second document and a key that
// comes twice among it, for any bytes.
nlohmann::ordered_json parse_yaml(std::string_view text);

}  // namespace aloft

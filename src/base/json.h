// JSON that others wrote, and JSON for others to read: the one place where text becomes a value and
// a value text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace aloft {

// Values are copied, compared and printed by recursion, so that a text of 100,000 brackets would
// end the program. Nothing that is read here nests deeper than ten.
inline constexpr int kDeepestJson = 64;

// The value of a text; discarded (is_discarded()) where it is not JSON or nests deeper than
// kDeepestJson. Never throws, for any bytes.
nlohmann::json parse_json(std::string_view text);

// What the text of a discarded value is, for a message: "not JSON", "nested too deeply".
std::string_view json_problem(std::string_view text);

// Whether all of a text's bytes are UTF-8, so that JSON holds it as it is.
bool is_utf8(std::string_view text);

// The text of a value; bytes that are not UTF-8 (names of files) become replacement characters.
// `indent` below zero: one line.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace aloft

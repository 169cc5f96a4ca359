#include "base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_mistake.h"
#include "base/ordered_json.h"

namespace aloft {
namespace {

// Where the library finds a zero byte it takes the text for ended, whatever comes behind.
bool has_zero(std::string_view text) { return text.find('\0') != std::string_view::npos; }

// Whether brackets outside strings nest deeper than allowed; for any bytes.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

template <class Json>
Json parsed(std::string_view text) {
  if (has_zero(text) || is_too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <class Json>
std::string text_of(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Of "[...] parse error at line 1, column 9: syntax error while parsing value - WHY; last read:
// ...".
std::string reason_in(std::string text) {
  if (const std::size_t at = text.find(" - "); at != std::string::npos) text.erase(0, at + 3);
  text.resize(std::min(text.size(), text.find("; last read: ")));
  return text;
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return parsed<nlohmann::json>(text); }

nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return parsed<nlohmann::ordered_json>(text);
}

std::string_view json_problem(std::string_view text) {
  if (has_zero(text)) return "text with a zero byte, which is not JSON";
  return is_too_deep(text) ? "JSON that is nested too deeply" : "text that is not JSON";
}

JsonMistake json_mistake(std::string_view text) {
  if (has_zero(text)) return {text.find('\0'), "a zero byte"};
  if (is_too_deep(text)) return {0, "nested too deeply"};
  try {
    static_cast<void>(nlohmann::json::parse(text));
    return {};
  } catch (const nlohmann::json::parse_error& e) {
    const std::size_t byte = e.byte > 0 ? e.byte - 1 : 0;  // counted from 1 there
    return {std::min(byte, text.size()), reason_in(e.what())};
  } catch (const nlohmann::json::exception&) {
    return {0, "a number that is too large"};
  }
}

bool is_utf8(std::string_view text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

std::string json_text(const nlohmann::json& value, int indent) { return text_of(value, indent); }
std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return text_of(value, indent);
}

}  // namespace aloft

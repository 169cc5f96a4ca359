#include "types/setting.h"

#include <algorithm>
#include <type_traits>

#include "base/text.h"

namespace aloft {
namespace {

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  if constexpr (std::is_same_v<T, std::int64_t>) return std::to_string(value);
  if constexpr (std::is_same_v<T, double>) return shortest(value);
  if constexpr (std::is_same_v<T, std::string>) return value;
}

template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string out;
  for (const T& v : values) out += (out.empty() ? "" : ", ") + text_of(v);
  return "[" + out + "]";
}

std::string_view kind_of(const SettingValue& value) {
  constexpr std::string_view kKinds[] = {
      "true or false", "a whole number",          "a number",
      "a text",        "a list of whole numbers", "a list of numbers"};
  return kKinds[value.index()];
}

template <class T>
std::string outside(const Limits& limits, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return "";
  } else if constexpr (std::is_same_v<T, std::string>) {
    std::vector<std::string> words(limits.words.begin(), limits.words.end());
    return limits.admits(std::string_view(value)) ? "" : "one of " + join(words, ", ");
  } else {
    return limits.admits(static_cast<double>(value)) ? "" : limits.range();
  }
}

template <class T>
std::string outside(const Limits& limits, const std::vector<T>& values) {
  for (const T& v : values)
    if (std::string need = outside(limits, v); !need.empty()) return "each " + need;
  return "";
}

// Whole numbers become numbers where such are wanted.
void widen(const SettingValue& like, SettingValue& value) {
  if (std::holds_alternative<double>(like))
    if (const auto* whole = std::get_if<std::int64_t>(&value)) value = static_cast<double>(*whole);
  if (std::holds_alternative<std::vector<double>>(like))
    if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&value))
      value = std::vector<double>(whole->begin(), whole->end());
}

}  // namespace

std::string str(const SettingValue& value) {
  return std::visit([](const auto& v) { return text_of(v); }, value);
}

std::string need_of(const Setting& setting, SettingValue& value) {
  widen(setting.fallback, value);
  if (value.index() != setting.fallback.index()) return std::string(kind_of(setting.fallback));
  return std::visit([&](const auto& v) { return outside(setting.limits, v); }, value);
}

}  // namespace aloft

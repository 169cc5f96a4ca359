#include "data/chat/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "data/tokenizers/utf8.h"

namespace aloft::chat {
namespace {

// Digits of the shortest decimal that reads back, and the place of its point before them.
std::pair<std::string, int> shortest_digits(double magnitude) {
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, magnitude, std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  const std::size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  std::string digits = text.substr(0, 1);
  if (e > 2) digits += text.substr(2, e - 2);
  return {digits, exponent + 1};
}

// Python's repr of a float that is finite: 1.0, 0.1, 1e+16, 1.5e-07.
std::string finite_text(double x) {
  const std::string sign = std::signbit(x) ? "-" : "";
  if (x == 0) return sign + "0.0";
  auto [digits, point] = shortest_digits(std::abs(x));
  const auto count = static_cast<int>(digits.size());
  if (point > 16 || point < -3) {
    const std::string fraction = count > 1 ? "." + digits.substr(1) : "";
    const int exponent = point - 1;
    return sign + digits[0] + fraction +
           fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (point <= 0) return sign + "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  if (count <= point)
    return sign + digits + std::string(static_cast<std::size_t>(point - count), '0') + ".0";
  const auto split = static_cast<std::size_t>(point);
  return sign + digits.substr(0, split) + "." + digits.substr(split);
}

std::string float_text(double x) {
  if (std::isnan(x)) return "nan";
  return std::isinf(x) ? (x < 0 ? "-inf" : "inf") : finite_text(x);
}

// Of which Python shows each character as it is; of others it would depend on its tables.
bool is_surely_shown(char32_t c) {
  constexpr std::pair<char32_t, char32_t> kShown[] = {
      {0xA1, 0xAC},     {0xAE, 0x377},    {0x384, 0x38A},     {0x38E, 0x3A1},    {0x3A3, 0x52F},
      {0x5D0, 0x5EA},   {0x620, 0x6DC},   {0x904, 0x977},     {0xE01, 0xE3A},    {0x2010, 0x2027},
      {0x2030, 0x205E}, {0x2070, 0x2071}, {0x20A0, 0x20BF},   {0x2100, 0x218B},  {0x2190, 0x2426},
      {0x2460, 0x2B73}, {0x3001, 0x303F}, {0x3041, 0x3096},   {0x30A0, 0x30FF},  {0x4E00, 0x9FFC},
      {0xAC00, 0xD7A3}, {0xFF01, 0xFFBE}, {0x1F300, 0x1F6D7}, {0x1F900, 0x1F978}};
  return std::any_of(std::begin(kShown), std::end(kShown),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

// A string within a list.
std::string quoted(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos;
  const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Step step = utf8::step(text, at);
    const char32_t c = step.code;
    if (c == static_cast<char32_t>(quote) || c == '\\')
      out += '\\', out += static_cast<char>(c);
    else if (c == '\n' || c == '\r' || c == '\t')
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    else if (c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else if (c < 0x7F || is_surely_shown(c))
      out.append(text, at, step.length);
    else
      fail(
          fmt::format("a list is printed with the character U+{:04X} in a string, which is not "
                      "done here; tojson writes it",
                      static_cast<unsigned>(c)));
    at += step.length;
  }
  return out + quote;
}

std::string shown(const Value& value);

std::string shown_list(const List& list) {
  if (list.kind != ListKind::List && list.kind != ListKind::Tuple)
    fail("printing a " + std::string(type_name(Value(std::make_shared<const List>(list)))) +
         " is not done here; the filter `list` makes a list of it");
  const bool is_tuple = list.kind == ListKind::Tuple;
  std::string out = is_tuple ? "(" : "[";
  for (std::size_t i = 0; i < list.items.size(); ++i)
    out += (i > 0 ? ", " : "") + shown(list.items[i]);
  if (is_tuple && list.items.size() == 1) out += ',';
  return out + (is_tuple ? ")" : "]");
}

std::string shown(const Value& value) {
  switch (value.type()) {
    case Value::Type::Undefined:
      return "Undefined";
    case Value::Type::None:
      return "None";
    case Value::Type::Boolean:
      return value.boolean() ? "True" : "False";
    case Value::Type::Integer:
      return std::to_string(value.whole());
    case Value::Type::Float:
      return float_text(value.number());
    case Value::Type::String:
      return quoted(value.text());
    case Value::Type::List:
      return shown_list(value.list());
    case Value::Type::Dict: {
      std::string out = "{";
      for (const auto& [k, v] : value.dict().items)
        out += (out.size() > 1 ? ", " : "") + shown(k) + ": " + shown(v);
      return out + "}";
    }
    case Value::Type::Namespace:
    case Value::Type::Function:
      fail("printing a " + std::string(type_name(value)) + " is not done here");
  }
  return "";
}

std::string json_string(const std::string& text, bool is_ascii) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Step step = utf8::step(text, at);
    const char32_t c = step.code;
    const std::size_t named = c < 0x80
                                  ? std::string_view("\"\\\n\r\t\b\f").find(static_cast<char>(c))
                                  : std::string_view::npos;
    if (named != std::string_view::npos)
      out += '\\', out += "\"\\nrtbf"[named];
    else if (c >= 0x10000 && is_ascii)
      out +=
          fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((static_cast<unsigned>(c) - 0x10000) >> 10),
                      0xDC00 + ((static_cast<unsigned>(c) - 0x10000) & 0x3FF));
    else if (c < 0x20 || (c >= 0x7F && is_ascii))
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out.append(text, at, step.length);
    at += step.length;
  }
  return out + '"';
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonForm& form) : form_(form) {}

  std::string text(const Value& value, int level = 0) const {
    switch (value.type()) {
      case Value::Type::None:
        return "null";
      case Value::Type::Boolean:
        return value.boolean() ? "true" : "false";
      case Value::Type::Integer:
        return std::to_string(value.whole());
      case Value::Type::Float:
        return number(value.number());
      case Value::Type::String:
        return json_string(value.text(), form_.is_ascii);
      case Value::Type::List:
        if (value.list().kind == ListKind::List || value.list().kind == ListKind::Tuple)
          return list(value.list(), level);
        break;
      case Value::Type::Dict:
        return dict(value.dict(), level);
      default:
        break;
    }
    fail("tojson of " + std::string(type_name(value)) + ", which JSON does not have");
  }

 private:
  static std::string number(double x) {
    if (std::isnan(x)) return "NaN";
    return std::isinf(x) ? (x < 0 ? "-Infinity" : "Infinity") : finite_text(x);
  }

  std::string line(int level) const {
    if (!form_.is_broken) return "";
    std::string out = "\n";
    for (int i = 0; i < level; ++i) out += form_.indent;
    return out;
  }

  std::string list(const List& list, int level) const {
    if (list.items.empty()) return "[]";
    std::string out = "[" + line(level + 1);
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out += form_.between + line(level + 1);
      out += text(list.items[i], level + 1);
    }
    return out + line(level) + "]";
  }

  std::string key(const Value& k) const {
    if (k.is_string()) return k.text();
    if (k.is_list()) fail("tojson of a dictionary with a key that is no text");
    return text(k);
  }

  std::string dict(const Dict& dict, int level) const {
    if (dict.items.empty()) return "{}";
    std::vector<std::pair<std::string, const Value*>> items;
    for (const auto& [k, v] : dict.items) items.emplace_back(key(k), &v);
    if (form_.is_sorted)
      std::stable_sort(items.begin(), items.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string out = "{" + line(level + 1);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += form_.between + line(level + 1);
      out += json_string(items[i].first, form_.is_ascii) + form_.behind_key +
             text(*items[i].second, level + 1);
    }
    return out + line(level) + "}";
  }

  const JsonForm& form_;
};

}  // namespace

std::string to_text(const Value& value, Work& work) {
  work.spend(weight_of(value));
  if (value.is_string()) return value.text();
  return value.is_undefined() ? "" : shown(value);
}

std::string to_json(const Value& value, const JsonForm& form, Work& work) {
  // What is written for each level is not weighed with the value.
  if (form.is_broken)
    work.spend(weight_of(value) * static_cast<std::int64_t>(1 + form.indent.size() / 8));
  work.spend(weight_of(value) * static_cast<std::int64_t>(1 + form.between.size() / 32));
  return JsonWriter(form).text(value);
}

}  // namespace aloft::chat

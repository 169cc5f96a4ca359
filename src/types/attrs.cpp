#include "types/attrs.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"

namespace aloft {
namespace {

std::string quote(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

[[noreturn]] void bad(std::string_view text) {
  throw UserError("E0104", "not an attribute: '" + std::string(text) + "'")
      .need("{axis=-1, name=\"w\", eps=1e-05, perm=(0,2,1), to=bf16, shape=[B<=8,4]}");
}

// End of one attribute value that starts at `from`: the next comma or closing brace outside
// quotes, parentheses and brackets.
std::size_t end_of_value(std::string_view text, std::size_t from) {
  bool quoted = false;
  int depth = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth == 0 && (c == ',' || c == '}')) return i;
  }
  bad(text);
}

template <class T>
std::optional<T> number(std::string_view text) {
  T v{};
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return v;
}

}  // namespace

const AttrValue* Attrs::find(Name name) const {
  for (const auto& [n, v] : all_)
    if (n == name) return &v;
  return nullptr;
}

void Attrs::set(Name name, AttrValue value) {
  for (auto& [n, v] : all_)
    if (n == name) {
      v = std::move(value);
      return;
    }
  all_.emplace_back(name, std::move(value));
}

void Attrs::erase(Name name) {
  std::erase_if(all_, [&](const auto& pair) { return pair.first == name; });
}

std::string print_attr(const AttrValue& value) {
  struct Print {
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const {
      char buffer[40];
      auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, d);
      std::string s(buffer, end);
      // A double always looks like one, so that it parses back to a double.
      if (std::isfinite(d) && s.find_first_of(".e") == std::string::npos) s += ".0";
      return s;
    }
    std::string operator()(const std::string& s) const { return quote(s); }
    std::string operator()(const Ints& v) const {
      std::string s = "(";
      for (std::size_t i = 0; i < v.size(); ++i) s += (i ? "," : "") + std::to_string(v[i]);
      return s + ")";
    }
    std::string operator()(DType t) const { return std::string(name_of(t)); }
    std::string operator()(const Shape& s) const { return s.str(); }
  };
  return std::visit(Print{}, value);
}

AttrValue parse_attr(std::string_view text) {
  if (text.empty()) bad(text);
  if (text == "true") return true;
  if (text == "false") return false;
  if (text.front() == '"') {
    std::string s;
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (text[i] == '"') {
        if (i + 1 != text.size()) bad(text);
        return s;
      }
      if (text[i] == '\\' && i + 1 < text.size()) {
        ++i;
        s += text[i] == 'n' ? '\n' : text[i];
      } else {
        s += text[i];
      }
    }
    bad(text);
  }
  if (text.front() == '(') {
    if (text.back() != ')') bad(text);
    Ints v;
    std::string_view rest = text.substr(1, text.size() - 2);
    while (!rest.empty()) {
      const auto comma = rest.find(',');
      const auto i = number<std::int64_t>(rest.substr(0, comma));
      if (!i) bad(text);
      v.push_back(*i);
      if (comma == std::string_view::npos) break;
      rest = rest.substr(comma + 1);
      if (rest.empty()) bad(text);
    }
    return v;
  }
  if (text.front() == '[') return parse_shape(text);
  if (const auto t = parse_dtype(text)) return *t;
  if (const auto i = number<std::int64_t>(text)) return *i;
  if (const auto d = number<double>(text)) return *d;
  bad(text);
}

std::string Attrs::str() const {
  if (all_.empty()) return "";
  std::string s = "{";
  for (const auto& [name, value] : all_) {
    if (s.size() > 1) s += ", ";
    s += name.str() + "=" + print_attr(value);
  }
  return s + "}";
}

Attrs parse_attrs(std::string_view text) {
  Attrs out;
  if (text.empty()) return out;
  if (text.front() != '{' || text.back() != '}') bad(text);
  std::size_t at = 1;
  while (at < text.size() && text[at] != '}') {
    while (text[at] == ' ') ++at;
    const auto equals = text.find('=', at);
    if (equals == std::string_view::npos || !is_identifier(text.substr(at, equals - at))) bad(text);
    const auto end = end_of_value(text, equals + 1);
    out.set(text.substr(at, equals - at), parse_attr(text.substr(equals + 1, end - equals - 1)));
    at = text[end] == ',' ? end + 1 : end;
  }
  if (at + 1 != text.size()) bad(text);
  return out;
}

void throw_unknown_attr(std::string_view name, std::string_view kind) {
  if (kind.empty()) throw UserError("E0105", "the op has no attribute '" + std::string(name) + "'");
  throw UserError("E0105", "attribute '" + std::string(name) + "' has the wrong kind of value")
      .need("a value such as " + std::string(kind));
}

}  // namespace aloft

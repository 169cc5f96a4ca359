#include "observe/config_check/python_settings.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/text.h"

namespace aloft::config_check {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 32;

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0;
}

// Where a text in quotes that begins at `at` ends, behind its quotes; npos where it does not.
std::size_t end_of_text(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.substr(at, 3) == three;
  for (std::size_t i = at + (is_long ? 3 : 1); i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (is_long && text.substr(i, 3) == three)
      return i + 3;
    else if (!is_long && text[i] == quote)
      return i + 1;
    else if (!is_long && text[i] == '\n')
      break;
  }
  return std::string_view::npos;
}

// A statement of one or more lines, without comments; brackets go on over the end of a line.
struct Statement {
  std::string text;
  int line = 1;
  bool is_indented = false;
};

std::vector<Statement> statements_of(std::string_view text) {
  std::vector<Statement> all;
  Statement now;
  int line = 1, depth = 0, opened = 0;
  bool is_start = true;  // of a line that begins a statement
  const auto end = [&] {
    if (!trim(now.text).empty()) all.push_back(now);
    now = {"", line, false};
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_start) now.line = line, now.is_indented = c == ' ' || c == '\t', is_start = false;
    if (c == '"' || c == '\'') {
      const std::size_t behind = end_of_text(text, i);
      if (behind == std::string_view::npos) throw PythonError("a text that is not closed", line);
      const std::string_view whole = text.substr(i, behind - i);
      now.text += whole;
      line += static_cast<int>(std::ranges::count(whole, '\n'));
      i = behind - 1;
    } else if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      now.text += ' ', ++line, ++i;
    } else if (c == '\n') {
      ++line;
      if (depth > 0) {
        now.text += ' ';
      } else {
        end();
        is_start = true;
      }
    } else if (c == ';' && depth == 0) {
      const bool is_indented = now.is_indented;
      end();
      now.is_indented = is_indented;
    } else {
      if (c == '(' || c == '[' || c == '{') {
        if (depth++ == 0) opened = line;
      } else if (c == ')' || c == ']' || c == '}') {
        depth = std::max(depth - 1, 0);
      }
      now.text += c;
    }
  }
  if (depth > 0) throw PythonError("a bracket that is not closed", opened);
  end();
  return all;
}

// Reads one literal; nothing where the text is anything else.
class Literal {
 public:
  Literal(std::string_view text, int line) : text_(text), line_(line) {}

  // The whole text: `0.9, 0.95` without brackets is a list, too.
  std::optional<Json> whole() {
    auto first = value(0);
    if (!first) return std::nullopt;
    skip();
    if (at_ == text_.size()) return first;
    Json list = Json::array({std::move(*first)});
    while (at_ < text_.size()) {
      if (!take(',')) return std::nullopt;
      skip();
      if (at_ == text_.size()) break;
      auto next = value(0);
      if (!next) return std::nullopt;
      list.push_back(std::move(*next));
      skip();
    }
    return list;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<Json> value(int depth) {
    if (depth > kDeepest) throw PythonError("lists that lie too deep within one another", line_);
    skip();
    if (at_ == text_.size()) return std::nullopt;
    const char c = text_[at_];
    if (c == '[' || c == '(') return list(depth);
    if (c == '{') return dictionary(depth);
    if (c == '"' || c == '\'') return texts();
    if (c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9')) return product();
    return word();
  }

  std::optional<Json> list(int depth) {
    const char close = text_[at_++] == '[' ? ']' : ')';
    Json all = Json::array();
    bool has_comma = false;
    while (!take(close)) {
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      all.push_back(std::move(*item));
      if (take(',')) {
        has_comma = true;
      } else {
        if (!take(close)) return std::nullopt;
        break;
      }
    }
    // (3) is 3, (3,) a tuple.
    if (close == ')' && all.size() == 1 && !has_comma) return std::move(all[0]);
    return all;
  }

  std::optional<Json> dictionary(int depth) {
    ++at_;
    Json all = Json::object();
    // A lookup in `members` looks at all of them.
    Json::object_t& members = all.get_ref<Json::object_t&>();
    std::unordered_map<std::string, std::ptrdiff_t> places;
    while (!take('}')) {
      const auto key = value(depth + 1);
      if (!key || !key->is_string() || !take(':')) return std::nullopt;
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      const auto [it, is_new] = places.emplace(key->get<std::string>(), std::ssize(members));
      if (is_new)
        members.emplace_back(it->first, std::move(*item));
      else
        (members.begin() + it->second)->second = std::move(*item);
      if (!take(',')) {
        if (!take('}')) return std::nullopt;
        break;
      }
    }
    return all;
  }

  // One text, or several that stand beside each other, which Python joins.
  std::optional<Json> texts() {
    std::string all;
    for (skip(); at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\''); skip()) {
      const std::size_t behind = end_of_text(text_, at_);
      if (behind == std::string_view::npos) return std::nullopt;
      const std::size_t quotes =
          behind - at_ >= 6 && text_.substr(at_, 3) == std::string(3, text_[at_]) ? 3 : 1;
      const std::string_view inner = text_.substr(at_ + quotes, behind - at_ - 2 * quotes);
      for (std::size_t i = 0; i < inner.size(); ++i) {
        if (inner[i] != '\\' || i + 1 == inner.size()) {
          all += inner[i];
          continue;
        }
        const char next = inner[++i];
        if (next == 'n')
          all += '\n';
        else if (next == 't')
          all += '\t';
        else if (next == '\\' || next == '\'' || next == '"')
          all += next;
        else
          return std::nullopt;
      }
      at_ = behind;
    }
    return Json(std::move(all));
  }

  std::optional<Json> word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "True" || name == "False") return Json(name == "True");
    if (name == "None") return Json(nullptr);
    return std::nullopt;  // a variable, a call, a text with a letter in front
  }

  // 5 * 8: whole where both are.
  std::optional<Json> product() {
    auto all = number();
    while (all && peek_times()) {
      const auto next = number();
      if (!next || all->is_string() || next->is_string()) return std::nullopt;
      std::int64_t whole = 0;
      if (!all->is_number_integer() || !next->is_number_integer())
        all = Json(all->get<double>() * next->get<double>());
      else if (!__builtin_mul_overflow(all->get<std::int64_t>(), next->get<std::int64_t>(), &whole))
        all = Json(whole);
      else
        return std::nullopt;
    }
    return all;
  }
  bool peek_times() {
    skip();
    if (at_ == text_.size() || text_[at_] != '*' || text_.substr(at_, 2) == "**") return false;
    ++at_;
    return true;
  }

  std::optional<Json> number() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (is_letter(text_[at_]) || text_[at_] == '.' ||
            ((text_[at_] == '-' || text_[at_] == '+') && (at_ == begin || is_exponent(begin)))))
      ++at_;
    std::string digits(text_.substr(begin, at_ - begin));
    std::erase(digits, '_');
    if (digits.starts_with('+')) digits.erase(0, 1);
    if (const auto whole = parse_int(digits)) return Json(*whole);
    const bool is_whole =
        !digits.empty() &&
        digits.find_first_not_of("0123456789", digits[0] == '-') == std::string::npos;
    if (is_whole) return Json(digits);  // more than 64 bits: a double would round it
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      const bool is_hex =
          digits.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos;
      return is_hex && digits.size() > 2 ? std::optional(Json(digits)) : std::nullopt;
    }
    if (std::ranges::any_of(digits, [](char c) {
          return std::isalpha(static_cast<unsigned char>(c)) && c != 'e' && c != 'E';
        }))
      return std::nullopt;
    const auto real = parse_double(digits);
    return real ? std::optional(Json(*real)) : std::nullopt;
  }
  // Whether the sign at `at_` is that of an exponent.
  bool is_exponent(std::size_t begin) const {
    const char before = text_[at_ - 1];
    return (before == 'e' || before == 'E') && text_.substr(begin, 2) != "0x";
  }

  std::string_view text_;
  int line_;
  std::size_t at_ = 0;
};

// `name = value`, `name: type = value`, `name += value`: the name, the sign, what stands behind it.
struct Assignment {
  std::string name, sign;
  std::string_view value;
};

std::optional<Assignment> assignment_of(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_letter(text[at])) ++at;
  if (at == 0 || (text[0] >= '0' && text[0] <= '9')) return std::nullopt;
  Assignment a{std::string(text.substr(0, at)), "", {}};
  std::string_view rest = trim(text.substr(at));
  if (rest.starts_with(':')) {  // of a type
    const std::size_t equals = rest.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    rest = rest.substr(equals);
  }
  const std::size_t equals = rest.find('=');
  if (equals == std::string_view::npos || rest.substr(equals, 2) == "==") return std::nullopt;
  a.sign = std::string(trim(rest.substr(0, equals + 1)));
  if (a.sign.find_first_not_of("+-*/%&|^@<>=") != std::string::npos) return std::nullopt;
  a.value = trim(rest.substr(equals + 1));
  return a;
}

// Calls each(name) for the names that the statement may give another value: those in front of an
// `=` or `:=`, and of a `for`, whatever else stands there.
template <class Each>
void each_target(std::string_view text, const Each& each) {
  std::vector<std::string> names;  // since the last target's end
  std::string last;
  int depth = 0;
  bool is_loop = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const std::size_t behind = end_of_text(text, i);
      if (behind == std::string_view::npos) return;
      i = behind - 1;
    } else if (is_letter(c)) {
      std::size_t end = i;
      while (end < text.size() && is_letter(text[end])) ++end;
      last = text.substr(i, end - i);
      if (last == "in" && is_loop)
        for (const std::string& name : names) each(name);
      if (last == "for") names.clear(), is_loop = true;
      names.push_back(last);
      i = end - 1;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == '=') {
      const char before = i > 0 ? text[i - 1] : ' ';
      if (text.substr(i, 2) == "==") {
        ++i;
      } else if (before == ':') {  // within an expression
        each(last);
      } else if (depth == 0 && before != '!' && before != '<' && before != '>') {
        for (const std::string& name : names) each(name);
        names.clear();
      }
    }
  }
}

}  // namespace

std::vector<PythonValue> parse_python(std::string_view text) {
  std::string plain(text);
  std::erase(plain, '\r');
  if (plain.starts_with("\xef\xbb\xbf")) plain.erase(0, 3);
  std::vector<std::optional<PythonValue>> found;
  std::unordered_map<std::string, std::size_t> places;  // of names in it
  for (const Statement& s : statements_of(plain)) {
    if (s.is_indented) continue;
    const auto forget = [&](const std::string& name) {
      if (const auto it = places.find(name); it != places.end()) found[it->second].reset();
    };
    each_target(s.text, forget);
    const auto a = assignment_of(trim(s.text));
    if (a) forget(a->name);  // also by <<=
    if (!a || a->sign != "=") continue;
    if (auto value = Literal(a->value, s.line).whole()) {
      places[a->name] = found.size();
      found.push_back(PythonValue{a->name, std::move(*value), s.line});
    }
  }
  std::vector<PythonValue> all;
  for (std::optional<PythonValue>& v : found)
    if (v) all.push_back(std::move(*v));
  return all;
}

}  // namespace aloft::config_check

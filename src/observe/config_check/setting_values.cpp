#include "observe/config_check/setting_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "observe/config_check/schedule_forms.h"
#include "observe/config_check/setting_forms.h"
#include "observe/config_check/setting_pairs.h"

namespace aloft::config_check {

namespace {

using Json = nlohmann::ordered_json;

// Names of a type of numbers; the first is what it is called here.
constexpr std::string_view kTypes[][5] = {{"f64", "float64", "fp64", "double"},
                                          {"f32", "float32", "fp32", "float"},
                                          {"bf16", "bfloat16"},
                                          {"f16", "float16", "fp16", "half"}};

// Of last parts of keys.
constexpr std::string_view kPlaces[] = {"*_dir",  "*_dirs",  "*_file", "*_files", "*_folder",
                                        "*_path", "*_paths", "dir",    "file",    "path"};

// Lists within lists within a text beyond this are not looked into.
constexpr int kDeepestList = 8;

std::string plain_text(const Json& v) {
  if (v.is_string()) return v.get<std::string>();
  if (v.is_number_float() && !std::isfinite(v.get<double>()))  // JSON has none
    return shortest(v.get<double>());
  if (v.is_array()) {  // as Python prints it, and so msprobe
    std::string text;
    for (const Json& item : v)
      text += (text.empty() ? "" : ", ") + (item.is_string() ? json_text(item) : plain_text(item));
    return "[" + text + "]";
  }
  return json_text(v);
}

// The names of a type, as the first of them; any other text as it is, in lower case.
std::string as_type(std::string_view text) {
  std::string word = lower(trim(text));
  for (const std::string_view library : {"torch.", "mindspore.", "mstype.", "jnp."})
    if (word.starts_with(library)) word.erase(0, library.size());
  for (const auto& names : kTypes)
    if (!word.empty() && std::ranges::find(names, word) != std::end(names))
      return std::string(names[0]);
  return word;
}

// A number as its digits say it, rounded nowhere: digits times ten to the exponent.
struct Decimal {
  bool is_negative = false;
  std::string digits;         // without zeros at either end; none of zero
  std::int64_t exponent = 0;  // 0 of zero
  bool is_whole() const { return exponent >= 0; }
  friend bool operator==(const Decimal&, const Decimal&) = default;
};

std::optional<std::string> decimal_of_hex(std::string_view text) {
  if (!text.starts_with("0x") && !text.starts_with("0X")) return std::nullopt;
  text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::to_string(value);
}

std::optional<Decimal> parse_decimal(std::string_view text) {
  constexpr std::int64_t kLargest = 100'000;  // of an exponent
  Decimal d;
  if (text.starts_with('-') || text.starts_with('+')) {
    d.is_negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const auto hex = decimal_of_hex(text);
  if (hex) text = *hex;
  const std::size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view exponent = text.substr(e + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    const auto value = parse_int(exponent);
    if (!value || *value > kLargest || *value < -kLargest) return std::nullopt;
    d.exponent = *value;
    text = text.substr(0, e);
  }
  const std::size_t point = text.find('.');
  d.digits = text.substr(0, point);
  if (point != std::string_view::npos) {
    const std::string_view behind = text.substr(point + 1);
    d.digits += behind;
    d.exponent -= static_cast<std::int64_t>(behind.size());
  }
  if (d.digits.empty() || d.digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  const std::size_t last = d.digits.find_last_not_of('0');
  if (last == std::string::npos) return Decimal();
  d.exponent += static_cast<std::int64_t>(d.digits.size() - 1 - last);
  d.digits.erase(last + 1);
  d.digits.erase(0, d.digits.find_first_not_of('0'));
  return d;
}

// Nothing where one of them is no number. Whole numbers are compared exactly, as large seeds want
// it; two fractions are one where they are the same double.
std::optional<bool> same_number(std::string_view a, std::string_view b) {
  a = trim(a), b = trim(b);
  const auto m = parse_decimal(a), n = parse_decimal(b);
  if (m && n && (m->is_whole() || n->is_whole())) return *m == *n;
  const auto unsigned_text = [](std::string_view text) {
    return text.starts_with('+') ? text.substr(1) : text;
  };
  const auto x = parse_double(unsigned_text(a)), y = parse_double(unsigned_text(b));
  if (x && y) return *x == *y || (std::isnan(*x) && std::isnan(*y));
  if (m && n) return *m == *n;  // beyond what a double holds
  return std::nullopt;
}

// Of words of types, true, false and nothing; other texts are one where they are written alike
// (names of files).
bool same_word(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const std::string m = as_type(a), n = as_type(b);
  const auto is_nothing = [](const std::string& w) {
    return w.empty() || w == "none" || w == "null";
  };
  if (is_nothing(m) && is_nothing(n)) return true;
  const bool is_word = m == "true" || m == "false" ||
                       std::ranges::any_of(kTypes, [&](const auto& t) { return t[0] == m; });
  return is_word && m == n;
}

// A value and what is known of it.
struct Value {
  Json json;
  bool is_text = false;     // quoted where numbers are not, or the name of a file
  bool is_whole = false;    // words between blanks are one text, no list
  bool is_version = false;  // 1.10 is not 1.1
};

bool is_boolean(const Value& v) {
  if (v.json.is_boolean()) return true;
  if (!v.json.is_string() || v.is_text) return false;
  const std::string word = lower(trim(v.json.get_ref<const std::string&>()));
  return word == "true" || word == "false";
}

std::optional<bool> truth_of(const Value& v) {
  const std::string word = lower(trim(plain_text(v.json)));
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  return std::nullopt;
}

bool same_scalar(const Value& a, const Value& b) {
  const std::string x = plain_text(a.json), y = plain_text(b.json);
  if (x == y) return true;
  if (is_boolean(a) || is_boolean(b)) {
    const auto p = truth_of(a), q = truth_of(b);
    if (p && q) return *p == *q;
  }
  const bool are_texts = a.json.is_string() && b.json.is_string() && a.is_text && b.is_text;
  if (!are_texts && !a.is_version && !b.is_version)
    if (const auto equal = same_number(x, y)) return *equal;
  return same_word(x, y);
}

// A list as a text has it.
struct Items {
  std::vector<Value> items;
  bool is_marked = false;  // by brackets, or a list of JSON
};

// Whether the bracket that a text begins with is closed by its last character.
bool is_bracketed(std::string_view text) {
  if (text.size() < 2 || (text[0] != '[' && text[0] != '(')) return false;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if (text[i] == ']' || text[i] == ')') --depth;
    if (depth == 0) return i + 1 == text.size() && text[i] == (text[0] == '[' ? ']' : ')');
  }
  return false;
}

// The parts of a text between separators that lie outside brackets and quotes, without blanks and
// quotes around them.
std::vector<std::string> parts_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  int depth = 0;
  char quote = 0;
  std::size_t begin = 0;
  const auto end_part = [&](std::size_t end) {
    std::string_view part = trim(text.substr(begin, end - begin));
    const bool is_quoted =
        part.size() >= 2 && (part[0] == '"' || part[0] == '\'') && part.back() == part[0];
    if (is_quoted) part = part.substr(1, part.size() - 2);
    parts.emplace_back(part);
    begin = end + 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '(') {
      ++depth;
    } else if (c == ']' || c == ')') {
      --depth;
    } else if (depth == 0 && separators.find(c) != std::string_view::npos) {
      end_part(i);
    }
  }
  end_part(text.size());
  return parts;
}

std::optional<Items> items_of(const Value& v) {
  if (v.json.is_array()) {
    Items all{{}, true};
    for (const Json& item : v.json) all.items.push_back({item, v.is_text, true, v.is_version});
    return all;
  }
  if (!v.json.is_string()) return std::nullopt;
  std::string_view text = trim(v.json.get_ref<const std::string&>());
  Items all;
  all.is_marked = is_bracketed(text);
  if (all.is_marked) text = trim(text.substr(1, text.size() - 2));
  if (text.empty()) return all.is_marked ? std::optional(all) : std::nullopt;
  std::vector<std::string> parts = parts_of(text, ",");
  if (parts.size() == 1) {  // 0.9 0.95; [0.9 0.95], as numpy prints it
    parts = parts_of(text, " \t\n");
    std::erase(parts, "");
    const bool are_words = parts.size() > 1 && !std::ranges::all_of(parts, [](const auto& part) {
                             return parse_decimal(part).has_value();
                           });
    if (v.is_whole && !all.is_marked && are_words) parts = {std::string(text)};
  } else if (all.is_marked && parts.back().empty()) {  // (0.9,)
    parts.pop_back();
  }
  for (std::string& part : parts)
    all.items.push_back({std::move(part), v.is_text, true, v.is_version});
  return all;
}

bool are_numbers(const Items& list) {
  return std::ranges::all_of(list.items, [](const Value& v) {
    return parse_decimal(trim(plain_text(v.json))).has_value();
  });
}

// Whether two lists may be meant: what has no brackets is one where the other side is, or where
// both have several numbers. A script alone has no other way to tell a list of one.
bool may_be_lists(const Value& a, const Items& x, const Value& b, const Items& y) {
  if (x.is_marked && y.is_marked) return true;
  if (x.items.size() < 2 || y.items.size() < 2) {
    const Value& unmarked = x.is_marked ? b : a;
    const Value& marked = x.is_marked ? a : b;
    return (x.is_marked || y.is_marked) && marked.json.is_array() && !unmarked.is_text;
  }
  return x.is_marked || y.is_marked || (are_numbers(x) && are_numbers(y));
}

bool same(const Value& a, const Value& b, int depth) {
  if (depth < kDeepestList) {
    const auto x = items_of(a), y = items_of(b);
    if (x && y && may_be_lists(a, *x, b, *y)) {
      if (x->items.size() != y->items.size()) return false;
      for (std::size_t i = 0; i < x->items.size(); ++i)
        if (!same(x->items[i], y->items[i], depth + 1)) return false;
      return true;
    }
  }
  return same_scalar(a, b);
}

// A setting called after a type says that type where it is true (--bf16), beside one of another
// name.
Json said_by(const Setting& s, const Setting& other) {
  const std::string name = last_part(s.key);
  const bool is_type = std::ranges::any_of(kTypes, [&](const auto& names) {
    return std::ranges::find(names, std::string_view(name)) != std::end(names);
  });
  const bool says_it =
      is_type && name != last_part(other.key) && lower(plain_text(s.value)) == "true";
  return says_it ? Json(name) : s.value;
}

}  // namespace

std::string plain_type(std::string_view text) {
  const std::string word = as_type(text);
  const bool is_type =
      std::ranges::any_of(kTypes, [&](const auto& names) { return names[0] == word; });
  return is_type ? word : "";
}

bool names_a_place(std::string_view key) {
  const std::string name = last_part(key);
  return std::ranges::any_of(kPlaces,
                             [&](std::string_view pattern) { return glob_match(pattern, name); });
}

bool names_a_version(std::string_view key) {
  const std::string name = last_part(key);
  return name == "version" || name.ends_with("_version");
}

bool same_text(std::string_view a, std::string_view b) {
  if (a == b) return true;
  if (const auto equal = same_number(a, b)) return *equal;
  return same_word(a, b);
}

bool same_value(const Setting& a, const Setting& b) {
  const auto is_optimizer = [](const Setting& s) { return common_name(s.key) == "optimizer"; };
  if ((is_optimizer(a) || is_optimizer(b)) && a.value.is_string() && b.value.is_string() &&
      plain_optimizer(value_text(a)) == plain_optimizer(value_text(b)))
    return true;
  const auto is_schedule = [](const Setting& s) {
    return common_name(s.key) == "lr_scheduler_type";
  };
  if ((is_schedule(a) || is_schedule(b)) && a.value.is_string() && b.value.is_string() &&
      plain_schedule(value_text(a)) == plain_schedule(value_text(b)))
    return true;
  const bool is_place = names_a_place(a.key) || names_a_place(b.key);
  const bool is_version = names_a_version(a.key) || names_a_version(b.key);
  const auto value_of = [&](const Setting& s, const Setting& other) {
    return Value{said_by(s, other), !s.is_untyped || is_place, !s.is_untyped || s.is_quoted,
                 is_version};
  };
  return same(value_of(a, b), value_of(b, a), 0);
}

std::string value_text(const Setting& setting) { return plain_text(setting.value); }

}  // namespace aloft::config_check

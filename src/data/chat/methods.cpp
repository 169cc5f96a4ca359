#include "data/chat/methods.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "data/chat/callable.h"
#include "data/chat/characters.h"

namespace aloft::chat {
namespace {

struct Method {
  std::string_view name;
  Value (*call)(const Value& self, const Given& given, Work& work);
};

// Attributes that Python's values have, or that Jinja's sandbox keeps from templates.
constexpr std::string_view kOfStrings =
    " casefold center count encode expandtabs format format_map index isalnum isalpha isascii "
    "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper ljust "
    "maketrans partition rfind rindex rjust rpartition swapcase translate zfill ";
constexpr std::string_view kOfDicts = " clear copy fromkeys pop popitem setdefault update ";
constexpr std::string_view kOfLists =
    " append clear copy count extend index insert pop remove reverse sort ";
constexpr std::string_view kOfNumbers =
    " as_integer_ratio bit_count bit_length conjugate denominator from_bytes fromhex hex imag "
    "is_integer numerator real to_bytes ";

bool is_listed(std::string_view list, std::string_view name) {
  return !name.empty() && list.find(" " + std::string(name) + " ") != std::string_view::npos;
}

template <Side side>
Value strip(const Value& self, const Given& given, Work&) {
  const Value* set = given.by_names({"chars"}, 0)[0];
  const bool is_space = !set || set->is_none();
  const std::string chars = is_space ? "" : text_or(set, "", given);
  return Value(stripped(self.text(), side, is_space ? nullptr : &chars));
}

template <Case letters>
Value change_case(const Value& self, const Given& given, Work&) {
  given.none();
  return Value(in_case(self.text(), letters));
}

template <bool is_at_end>
Value begins(const Value& self, const Given& given, Work& work) {
  const Value& one = given.only();
  const bool is_tuple = one.is_list() && one.list().kind == ListKind::Tuple;
  const std::vector<Value> all = is_tuple ? items_of(one, work) : std::vector<Value>{one};
  return Value(std::any_of(all.begin(), all.end(), [&](const Value& v) {
    const std::string part = text_or(&v, "", given);
    return is_at_end ? self.text().ends_with(part) : self.text().starts_with(part);
  }));
}

Value list_of(const std::vector<std::string_view>& parts, Work& work) {
  work.spend(static_cast<std::int64_t>(parts.size()));
  std::vector<Value> items;
  for (const std::string_view part : parts) items.emplace_back(part);
  return make_list(std::move(items));
}

// Words between white space; the rest behind `most` of them is one.
std::vector<std::string_view> words_of(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> words;
  for (text = without_space_before(text); !text.empty(); text = without_space_before(text)) {
    if (most >= 0 && static_cast<std::int64_t>(words.size()) == most) {
      words.push_back(text);
      break;
    }
    std::size_t end = 0;
    while (end < text.size() && without_space_before(text.substr(end)).size() == text.size() - end)
      end += std::max<std::size_t>(1, place_of_character(text.substr(end, 4), 1));
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

Value split_text(const Value& self, const Given& given, Work& work) {
  const auto values = given.by_names({"sep", "maxsplit"}, 0);
  const std::int64_t most = whole_or(values[1], -1, given);
  std::string_view text = self.text();
  if (!values[0] || values[0]->is_none()) return list_of(words_of(text, most), work);
  const std::string separator = text_or(values[0], "", given);
  if (separator.empty()) fail("split with an empty separator");
  std::vector<std::string_view> parts;
  for (std::int64_t n = 0; most < 0 || n < most; ++n) {
    const std::size_t at = text.find(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return list_of(parts, work);
}

Value split_text_behind(const Value& self, const Given& given, Work& work) {
  const auto values = given.by_names({"sep", "maxsplit"}, 0);
  const std::int64_t most = whole_or(values[1], -1, given);
  if (!values[0] || values[0]->is_none()) {
    if (most >= 0) fail("rsplit by white space with a limit is not done here");
    return list_of(words_of(self.text(), most), work);
  }
  std::string_view text = self.text();
  const std::string separator = text_or(values[0], "", given);
  if (separator.empty()) fail("rsplit with an empty separator");
  std::vector<std::string_view> parts;
  for (std::int64_t n = 0; most < 0 || n < most; ++n) {
    const std::size_t at = text.rfind(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return list_of(parts, work);
}

Value split_lines(const Value& self, const Given& given, Work& work) {
  given.none();
  return list_of(lines_of(self.text()), work);
}

Value replace_text(const Value& self, const Given& given, Work& work) {
  const auto values = given.by_names({"old", "new", "count"}, 2);
  return Value(replaced(self.text(), text_or(values[0], "", given), text_or(values[1], "", given),
                        whole_or(values[2], -1, given), work));
}

Value find_text(const Value& self, const Given& given, Work&) {
  const std::size_t at = self.text().find(text_or(&given.only(), "", given));
  if (at == std::string::npos) return Value(std::int64_t{-1});
  return Value(
      static_cast<std::int64_t>(count_characters(std::string_view(self.text()).substr(0, at))));
}

Value join_texts(const Value& self, const Given& given, Work& work) {
  std::string out;
  bool is_first = true;
  for (const Value& v : items_of(given.only(), work)) {
    work.spend(weight_of(v) + weight_of(self));
    if (!std::exchange(is_first, false)) out += self.text();
    out += text_or(&v, "", given);
  }
  return Value(std::move(out));
}

template <bool is_at_end>
Value remove_part(const Value& self, const Given& given, Work&) {
  const std::string part = text_or(&given.only(), "", given);
  std::string_view text = self.text();
  if (is_at_end && text.ends_with(part)) text.remove_suffix(part.size());
  if (!is_at_end && text.starts_with(part)) text.remove_prefix(part.size());
  return Value(text);
}

constexpr Method kStringMethods[] = {
    {"capitalize", change_case<Case::Capital>},
    {"endswith", begins<true>},
    {"find", find_text},
    {"join", join_texts},
    {"lower", change_case<Case::Lower>},
    {"lstrip", strip<Side::Before>},
    {"removeprefix", remove_part<false>},
    {"removesuffix", remove_part<true>},
    {"replace", replace_text},
    {"rsplit", split_text_behind},
    {"rstrip", strip<Side::Behind>},
    {"split", split_text},
    {"splitlines", split_lines},
    {"startswith", begins<false>},
    {"strip", strip<Side::Both>},
    {"title", change_case<Case::Title>},
    {"upper", change_case<Case::Upper>},
};

enum class Half { Keys, Values, Items };

template <Half half>
Value view_of(const Value& self, const Given& given, Work& work) {
  given.none();
  std::vector<Value> items;
  work.spend(static_cast<std::int64_t>(self.dict().items.size()));
  for (const auto& [k, v] : self.dict().items)
    items.push_back(half == Half::Keys     ? k
                    : half == Half::Values ? v
                                           : make_list({k, v}, ListKind::Tuple));
  return make_list(std::move(items), ListKind::View);
}

Value get_item(const Value& self, const Given& given, Work& work) {
  const auto values = given.by_names({"key", "default"}, 1);
  work.spend(static_cast<std::int64_t>(self.dict().items.size()) / 8);
  if (const Value* found = self.dict().find(*values[0])) return *found;
  return values[1] ? *values[1] : Value();
}

constexpr Method kDictMethods[] = {
    {"get", get_item},
    {"items", view_of<Half::Items>},
    {"keys", view_of<Half::Keys>},
    {"values", view_of<Half::Values>},
};

template <std::size_t n>
Value bound_method(const Method (&methods)[n], const Value& self, std::string_view name,
                   std::string_view others) {
  for (const Method& m : methods)
    if (m.name == name)
      return make_function(std::string(name), [&m, self](const Given& given, Work& work) {
        work.spend(self.is_string() ? weight_of(self) : 1);
        return m.call(self, given, work);
      });
  if (is_listed(others, name))
    fail("the method " + std::string(type_name(self)) + "." + std::string(name) +
         " is not done here");
  return Undefined{};
}

}  // namespace

Value method_of(const Value& value, std::string_view name) {
  if (name.starts_with("__")) fail("the attribute " + in_quotes(name) + " of a value");
  if (value.is_string()) return bound_method(kStringMethods, value, name, kOfStrings);
  if (value.is_dict()) return bound_method(kDictMethods, value, name, kOfDicts);
  const std::string_view others = value.is_list()     ? kOfLists
                                  : value.is_number() ? kOfNumbers
                                                      : std::string_view();
  if (is_listed(others, name))
    fail("the attribute " + std::string(type_name(value)) + "." + std::string(name) +
         " is not done here");
  return Undefined{};
}

std::string stripped(std::string_view text, Side side, const std::string* set) {
  if (!set) {
    if (side != Side::Behind) text = without_space_before(text);
    if (side != Side::Before) text = without_space_behind(text);
    return std::string(text);
  }
  if (set->size() > 256) fail("a set of more than 256 bytes of characters to be stripped");
  std::vector<std::string_view> all = characters(text);
  const std::vector<std::string_view> taken = characters(*set);
  const auto is_taken = [&](std::string_view c) {
    return std::find(taken.begin(), taken.end(), c) != taken.end();
  };
  std::size_t first = 0, last = all.size();
  while (side != Side::Behind && first < last && is_taken(all[first])) ++first;
  while (side != Side::Before && last > first && is_taken(all[last - 1])) --last;
  std::string out;
  for (std::size_t i = first; i < last; ++i) out += all[i];
  return out;
}

std::vector<std::string_view> lines_of(std::string_view rest) {
  std::vector<std::string_view> lines;
  constexpr std::string_view kLongEnds[] = {"\r\n", "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"};
  for (std::size_t at = 0; at < rest.size();) {
    const auto c = static_cast<unsigned char>(rest[at]);
    std::size_t length = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) ? 1 : 0;
    for (const std::string_view end : kLongEnds)
      if (rest.substr(at).starts_with(end)) length = end.size();
    if (length == 0) {
      ++at;
      continue;
    }
    lines.push_back(rest.substr(0, at));
    rest.remove_prefix(at + length);
    at = 0;
  }
  if (!rest.empty()) lines.push_back(rest);
  return lines;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     std::int64_t most, Work& work) {
  std::string out;
  const auto is_more = [&] { return most < 0 || most-- > 0; };
  if (from.empty()) {  // between all characters
    for (const std::string_view c : characters(text)) {
      work.spend(1 + static_cast<std::int64_t>(to.size() / 32));
      if (is_more()) out += to;
      out += c;
    }
    if (is_more()) out += to;
    return out;
  }
  for (std::size_t at = 0;;) {
    const std::size_t found = is_more() ? text.find(from, at) : std::string_view::npos;
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    work.spend(1 + static_cast<std::int64_t>(to.size() / 32));
    out += to;
    at = found + from.size();
  }
}

std::string in_case(const std::string& text, Case letters) {
  if (!is_ascii(text))
    fail("the case of letters beyond ASCII is not changed here, as of " + in_quotes(text));
  std::string out = text;
  bool is_first = true;
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_upper = letters == Case::Upper || (letters != Case::Lower && is_first);
    c = static_cast<char>(is_upper ? std::toupper(byte) : std::tolower(byte));
    is_first = letters == Case::Title && std::isalpha(byte) == 0;
  }
  return out;
}

}  // namespace aloft::chat

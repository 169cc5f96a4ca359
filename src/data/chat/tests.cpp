#include "data/chat/tests.h"

#include <algorithm>
#include <cctype>

#include "data/chat/characters.h"
#include "data/chat/operators.h"
#include "data/chat/value_text.h"

namespace aloft::chat {
namespace {

using Type = Value::Type;

bool is_sequence(const Value& v) {
  const bool is_indexed =
      v.is_list() && v.list().kind != ListKind::View && v.list().kind != ListKind::Iterator;
  return v.is_string() || v.is_dict() || v.is_undefined() || is_indexed;
}

// By what the value is alone.
template <class Rule>
constexpr auto plain(Rule) {
  return [](const Value& value, const Given& given, Work&) {
    given.none();
    return Rule()(value);
  };
}

template <bool is_equal>
bool equals(const Value& value, const Given& given, Work& work) {
  return compare("==", value, given.only(), work) == is_equal;
}

bool is_in(const Value& value, const Given& given, Work& work) {
  return compare("in", value, given.only(), work);
}

bool is_divided(const Value& value, std::int64_t by, Work& work) {
  return are_equal(operation("%", value, Value(by), work), Value(std::int64_t{0}));
}

bool divides(const Value& value, const Given& given, Work& work) {
  return is_divided(value, whole_or(&given.only(), 1, given), work);
}

template <bool is_even>
bool parity(const Value& value, const Given& given, Work& work) {
  given.none();
  return is_divided(value, 2, work) == is_even;
}

// There is a letter, and none of the other case.
template <bool is_upper>
bool has_case(const Value& value, const Given& given, Work& work) {
  given.none();
  const std::string text = to_text(value, work);
  if (!is_ascii(text)) fail("the case of letters beyond ASCII is not told here");
  bool any = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte) == 0) continue;
    if ((std::isupper(byte) != 0) != is_upper) return false;
    any = true;
  }
  return any;
}

constexpr Test kTests[] = {
    {"boolean", plain([](const Value& v) { return v.is(Type::Boolean); })},
    {"callable", plain([](const Value& v) { return v.is(Type::Function); })},
    {"defined", plain([](const Value& v) { return !v.is_undefined(); })},
    {"divisibleby", divides},
    {"eq", equals<true>},
    {"equalto", equals<true>},
    {"even", parity<true>},
    {"false", plain([](const Value& v) { return v.is(Type::Boolean) && !v.boolean(); })},
    {"float", plain([](const Value& v) { return v.is(Type::Float); })},
    {"in", is_in},
    {"integer", plain([](const Value& v) { return v.is(Type::Integer); })},
    {"iterable", plain([](const Value& v) {
       return v.is_undefined() || v.is_string() || v.is_list() || v.is_dict();
     })},
    {"lower", has_case<false>},
    {"mapping", plain([](const Value& v) { return v.is_dict(); })},
    {"ne", equals<false>},
    {"none", plain([](const Value& v) { return v.is_none(); })},
    {"number", plain([](const Value& v) { return v.is_number(); })},
    {"odd", parity<false>},
    {"sequence", plain([](const Value& v) { return is_sequence(v); })},
    {"string", plain([](const Value& v) { return v.is_string(); })},
    {"true", plain([](const Value& v) { return v.is(Type::Boolean) && v.boolean(); })},
    {"undefined", plain([](const Value& v) { return v.is_undefined(); })},
    {"upper", has_case<true>},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kTests), std::end(kTests), [&](auto& t) { return t.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

std::string names_of_tests() {
  std::string out;
  for (const Test& t : kTests) out += (out.empty() ? "" : ", ") + std::string(t.name);
  return out;
}

}  // namespace aloft::chat

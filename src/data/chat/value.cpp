#include "data/chat/value.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/chat/characters.h"

namespace aloft::chat {
namespace {

int depth_of(const Value& v) {
  return v.is_list() ? v.list().depth : v.is_dict() ? v.dict().depth : 0;
}

// Of what is put into a list.
class Measured {
 public:
  void add(const Value& v) {
    depth_ = std::max(depth_, depth_of(v) + 1);
    weight_ += weight_of(v);
    if (depth_ > kDeepestValue)
      fail("lists nest deeper than " + std::to_string(kDeepestValue) + " levels");
    if (weight_ > kHeaviestValue) fail("a list holds more than a template may put into one");
  }
  int depth() const { return depth_; }
  std::int64_t weight() const { return weight_; }

 private:
  int depth_ = 1;
  std::int64_t weight_ = 1;
};

bool are_equal_lists(const List& a, const List& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), are_equal);
}

bool are_equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  return std::all_of(a.items.begin(), a.items.end(), [&](const auto& item) {
    const Value* other = b.find(item.first);
    return other && are_equal(item.second, *other);
  });
}

// 2^53 + 1 and the double 2^53 are not the same.
bool are_equal_numbers(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return a.whole() == b.whole();
  if (a.is_whole() || b.is_whole()) {
    const std::int64_t n = a.is_whole() ? a.whole() : b.whole();
    const double x = a.is_whole() ? b.number() : a.number();
    return std::floor(x) == x && std::abs(x) < 0x1p63 && static_cast<std::int64_t>(x) == n;
  }
  return a.number() == b.number();
}

}  // namespace

void fail(std::string text) { throw Failure{std::move(text)}; }

const Value* Dict::find(const Value& key) const {
  for (const auto& [k, v] : items)
    if (are_equal(k, key)) return &v;
  return nullptr;
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [k, v] : items)
    if (k == name) return &v;
  return nullptr;
}

Value::Type Value::type() const {
  constexpr Type kTypes[] = {Type::None,      Type::Undefined, Type::Boolean, Type::Integer,
                             Type::Float,     Type::String,    Type::List,    Type::Dict,
                             Type::Namespace, Type::Function};
  return kTypes[held_.index()];
}

std::int64_t Value::whole() const {
  if (const bool* b = std::get_if<bool>(&held_)) return *b ? 1 : 0;
  return std::get<std::int64_t>(held_);
}

double Value::number() const {
  if (const double* x = std::get_if<double>(&held_)) return *x;
  return static_cast<double>(whole());
}

void Work::spend(std::int64_t steps) {
  if (steps > left_) fail("the template does more than it may on one conversation");
  left_ -= steps;
}

std::int64_t weight_of(const Value& value) {
  if (value.is_string()) return 1 + static_cast<std::int64_t>(value.text().size() / 32);
  return value.is_list() ? value.list().weight : value.is_dict() ? value.dict().weight : 1;
}

Value make_list(std::vector<Value> items, ListKind kind) {
  Measured m;
  for (const Value& v : items) m.add(v);
  return Value(std::make_shared<const List>(List{kind, std::move(items), m.depth(), m.weight()}));
}

Value make_dict(std::vector<std::pair<Value, Value>> items) {
  Measured m;
  for (const auto& [k, v] : items) m.add(k), m.add(v);
  return Value(std::make_shared<const Dict>(Dict{std::move(items), m.depth(), m.weight()}));
}

std::string_view type_name(const Value& value) {
  switch (value.type()) {
    case Value::Type::Undefined:
      return "an undefined value";
    case Value::Type::None:
      return "NoneType";
    case Value::Type::Boolean:
      return "bool";
    case Value::Type::Integer:
      return "int";
    case Value::Type::Float:
      return "float";
    case Value::Type::String:
      return "str";
    case Value::Type::Dict:
      return "dict";
    case Value::Type::Namespace:
      return "namespace";
    case Value::Type::Function:
      return "function";
    case Value::Type::List:
      break;
  }
  constexpr std::string_view kKinds[] = {"list", "tuple", "range", "dict view", "iterator"};
  return kKinds[static_cast<std::size_t>(value.list().kind)];
}

bool is_true(const Value& value) {
  switch (value.type()) {
    case Value::Type::Undefined:
    case Value::Type::None:
      return false;
    case Value::Type::Boolean:
    case Value::Type::Integer:
      return value.whole() != 0;
    case Value::Type::Float:
      return value.number() != 0;
    case Value::Type::String:
      return !value.text().empty();
    case Value::Type::List:
      return value.list().kind == ListKind::Iterator || !value.list().items.empty();
    case Value::Type::Dict:
      return !value.dict().items.empty();
    case Value::Type::Namespace:
    case Value::Type::Function:
      return true;
  }
  return true;
}

bool are_equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return are_equal_numbers(a, b);
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Value::Type::String:
      return a.text() == b.text();
    case Value::Type::List:
      if (a.list().kind == ListKind::Iterator) return &a.list() == &b.list();
      return are_equal_lists(a.list(), b.list());
    case Value::Type::Dict:
      return are_equal_dicts(a.dict(), b.dict());
    case Value::Type::Namespace:
      return &a.space() == &b.space();
    case Value::Type::Function:
      return &a.function() == &b.function();
    default:
      return true;  // None, and what is undefined
  }
}

std::vector<Value> items_of(const Value& value, Work& work) {
  std::vector<Value> items;
  if (value.is_undefined()) return items;
  if (value.is_string()) {
    work.spend(static_cast<std::int64_t>(value.text().size()));
    for (const std::string_view c : characters(value.text())) items.emplace_back(c);
    return items;
  }
  if (value.is_dict()) {
    work.spend(static_cast<std::int64_t>(value.dict().items.size()));
    for (const auto& [k, v] : value.dict().items) items.push_back(k);
    return items;
  }
  if (!value.is_list()) fail(std::string(type_name(value)) + " cannot be gone through");
  const List& list = value.list();
  work.spend(static_cast<std::int64_t>(list.items.size()));
  if (list.kind != ListKind::Iterator) return list.items;
  return std::exchange(list.is_spent, true) ? items : list.items;
}

std::int64_t length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) return static_cast<std::int64_t>(count_characters(value.text()));
  if (value.is_dict()) return static_cast<std::int64_t>(value.dict().items.size());
  if (!value.is_list() || value.list().kind == ListKind::Iterator)
    fail(std::string(type_name(value)) + " has no length");
  return static_cast<std::int64_t>(value.list().items.size());
}

Value from_json(const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_string()) return Value(json.get_ref<const std::string&>());
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX)
    fail("a number above the largest of 64 bits, " + json.dump());
  if (json.is_number()) return Value(json.get<std::int64_t>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(from_json(item));
    return make_list(std::move(items));
  }
  if (json.is_object()) {
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [key, item] : json.items()) items.emplace_back(Value(key), from_json(item));
    return make_dict(std::move(items));
  }
  return Value();
}

}  // namespace aloft::chat

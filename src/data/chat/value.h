// Values of a chat template, as Python has them: what messages hold and expressions give. Copies
// are cheap: text, lists and dictionaries are shared and never change. Lists nest at most
// kDeepestValue deep and weigh at most kHeaviestValue, however often they hold one another, so that
// whatever goes through a value may do so by recursion.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace aloft::chat {

class Value;
struct Callable;

// What a name, key or attribute that is not there gives: it prints as nothing and is false, and
// most else that is done with it fails, naming it.
struct Undefined {
  std::string name;  // for messages: "message.content"
};

// What Python has as different kinds of sequences.
enum class ListKind : std::uint8_t {
  List,
  Tuple,
  Range,
  View,      // dict.items(), .keys(), .values(): has a length and no elements by number
  Iterator,  // what most filters give: goes by once, has no length and counts as true
};

struct List {
  ListKind kind = ListKind::List;
  std::vector<Value> items;
  int depth = 1;                  // of lists within lists
  std::int64_t weight = 1;        // weight_of() of all that is in it
  mutable bool is_spent = false;  // of an Iterator
};

// In the order in which keys came.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  int depth = 1;
  std::int64_t weight = 1;

  const Value* find(const Value& key) const;  // null where there is none
};

// namespace(): the one thing that changes. Belongs to the rendering that made it.
struct Namespace {
  std::vector<std::pair<std::string, Value>> items;

  const Value* find(std::string_view name) const;
};

class Value {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Lists = std::shared_ptr<const List>;
  using Dicts = std::shared_ptr<const Dict>;
  using Functions = std::shared_ptr<const Callable>;
  enum class Type : std::uint8_t {
    Undefined,
    None,
    Boolean,
    Integer,
    Float,
    String,
    List,
    Dict,
    Namespace,
    Function,
  };

  Value() : held_(nullptr) {}  // None
  Value(Undefined u) : held_(std::make_shared<const Undefined>(std::move(u))) {}
  explicit Value(bool b) : held_(b) {}
  explicit Value(std::int64_t n) : held_(n) {}
  explicit Value(double x) : held_(x) {}
  explicit Value(std::string text) : held_(std::make_shared<const std::string>(std::move(text))) {}
  explicit Value(const char* text) : Value(std::string(text)) {}
  explicit Value(std::string_view text) : Value(std::string(text)) {}
  Value(Lists list) : held_(std::move(list)) {}
  Value(Dicts dict) : held_(std::move(dict)) {}
  Value(Namespace* space) : held_(space) {}
  Value(Functions function) : held_(std::move(function)) {}

  Type type() const;
  bool is(Type t) const { return type() == t; }
  bool is_undefined() const { return is(Type::Undefined); }
  bool is_none() const { return is(Type::None); }
  bool is_string() const { return is(Type::String); }
  bool is_list() const { return is(Type::List); }
  bool is_dict() const { return is(Type::Dict); }
  // In Python, True and False are whole numbers.
  bool is_whole() const { return is(Type::Boolean) || is(Type::Integer); }
  bool is_number() const { return is_whole() || is(Type::Float); }

  // Of a value of that type alone.
  bool boolean() const { return std::get<bool>(held_); }
  std::int64_t whole() const;  // of a Boolean, too
  double number() const;       // of any number
  const std::string& text() const { return *std::get<Text>(held_); }
  const List& list() const { return *std::get<Lists>(held_); }
  const Dict& dict() const { return *std::get<Dicts>(held_); }
  Namespace& space() const { return *std::get<Namespace*>(held_); }
  const Callable& function() const { return *std::get<Functions>(held_); }
  const std::string& missing_name() const {
    return std::get<std::shared_ptr<const Undefined>>(held_)->name;
  }

 private:
  std::variant<std::nullptr_t, std::shared_ptr<const Undefined>, bool, std::int64_t, double, Text,
               Lists, Dicts, Namespace*, Functions>
      held_;
};

inline constexpr int kDeepestValue = 100;
inline constexpr std::int64_t kHeaviestValue = 1 << 24;

// What is wrong with what a template does to values, in a line; who evaluates it says where.
struct Failure {
  std::string text;
};
[[noreturn]] void fail(std::string text);

// What a rendering may still do. A template is a program that somebody else wrote: it gets so many
// steps, where going through 32 bytes of text is one, too, and no more.
class Work {
 public:
  explicit Work(std::int64_t most) : left_(most) {}
  // Failure where that is more than there is.
  void spend(std::int64_t steps);

 private:
  std::int64_t left_;
};

// How much there is to go through: 1 and one for each 32 bytes of a text; all that a list holds.
std::int64_t weight_of(const Value& value);

// Failure where lists would nest too deeply or weigh too much.
Value make_list(std::vector<Value> items, ListKind kind = ListKind::List);
Value make_dict(std::vector<std::pair<Value, Value>> items);

// What Python calls the type: "str", "NoneType".
std::string_view type_name(const Value& value);
bool is_true(const Value& value);
// ==, by Python's rules: 1 == 1.0 == True, a list is no tuple.
bool are_equal(const Value& a, const Value& b);
// The items of what can be gone through: a string gives its characters, a dictionary its keys. An
// iterator is spent by it. Failure for others.
std::vector<Value> items_of(const Value& value, Work& work);
// Python's len(): characters of a string. Failure for what has none.
std::int64_t length_of(const Value& value);

// The messages, tools and settings that a template is given.
Value from_json(const nlohmann::ordered_json& json);

}  // namespace aloft::chat

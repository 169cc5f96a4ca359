#include "base/text.h"
#include "data/chat/evaluator.h"
#include "data/chat/filters.h"
#include "data/chat/operators.h"
#include "data/chat/tests.h"
#include "data/chat/value_text.h"

namespace aloft::chat {

Value Evaluator::value_of(const Expression& e, const Scope& scope) {
  go_deeper();
  at_ = e.at;
  work_.spend(1);
  Value value = value_of_kind(e, scope);
  --depth_;
  return value;
}

Value Evaluator::value_of_kind(const Expression& e, const Scope& scope) {
  using Kind = Expression::Kind;
  const auto part = [&](std::size_t i) { return value_of(*e.parts[i], scope); };
  switch (e.kind) {
    case Kind::Constant:
      return e.constant;
    case Kind::Name:
      return name_value(e, scope);
    case Kind::List:
    case Kind::Tuple:
      return list_value(e, scope);
    case Kind::Dict:
      return dict_value(e, scope);
    case Kind::Sign:
      return with_sign(e.text, part(0));
    case Kind::Operation:
      return operation_value(e, scope);
    case Kind::Join:
      return joined_value(e, scope);
    case Kind::Not:
      return Value(!is_true(part(0)));
    case Kind::And: {
      Value left = part(0);
      return is_true(left) ? part(1) : left;
    }
    case Kind::Or: {
      Value left = part(0);
      return is_true(left) ? left : part(1);
    }
    case Kind::Compare:
      return compared_value(e, scope);
    case Kind::Choice:
      return choice_value(e, scope);
    case Kind::Attribute: {
      const Value value = part(0);
      at_ = e.at;
      return attribute_of(value, e.text);
    }
    case Kind::Subscript: {
      const Value value = part(0), key = part(1);
      at_ = e.at;
      return item_of(value, key);
    }
    case Kind::Slice:
      return slice_value(e, scope);
    case Kind::Call:
      return call_value(e, scope);
    case Kind::Filter:
      return filtered(e, part(0), scope);
    case Kind::Test:
      return tested(e, scope);
  }
  return Value();
}

Value Evaluator::value_or_none(const ExpressionPtr& e, const Scope& scope) {
  return e ? value_of(*e, scope) : Value();
}

Value Evaluator::name_value(const Expression& e, const Scope& scope) {
  if (const Value* found = scope.find(e.text)) return *found;
  return function_of(e.text, around_);
}

Value Evaluator::list_value(const Expression& e, const Scope& scope) {
  std::vector<Value> items;
  for (const ExpressionPtr& part : e.parts) items.push_back(value_of(*part, scope));
  return make_list(std::move(items),
                   e.kind == Expression::Kind::Tuple ? ListKind::Tuple : ListKind::List);
}

Value Evaluator::dict_value(const Expression& e, const Scope& scope) {
  Dict made;
  for (std::size_t i = 0; i < e.parts.size(); i += 2) {
    const Value key = value_of(*e.parts[i], scope);
    Value value = value_of(*e.parts[i + 1], scope);
    if ((key.is_list() && key.list().kind == ListKind::List) || key.is_dict())
      fail("a " + std::string(type_name(key)) + " cannot be a key");
    work_.spend(static_cast<std::int64_t>(made.items.size()));
    if (Value* same = const_cast<Value*>(made.find(key)))
      *same = std::move(value);
    else
      made.items.emplace_back(key, std::move(value));
  }
  return make_dict(std::move(made.items));
}

Value Evaluator::joined_value(const Expression& e, const Scope& scope) {
  std::string text;
  for (const ExpressionPtr& part : e.parts) {
    const Value value = value_of(*part, scope);
    text += to_text(value, work_);
  }
  return Value(std::move(text));
}

// a < b < c: each is evaluated once, and none behind the first that does not hold.
Value Evaluator::compared_value(const Expression& e, const Scope& scope) {
  Value left = value_of(*e.parts[0], scope);
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    Value right = value_of(*e.parts[i + 1], scope);
    at_ = e.at;
    if (!compare(e.operators[i], left, right, work_)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Evaluator::choice_value(const Expression& e, const Scope& scope) {
  if (is_true(value_of(*e.parts[1], scope))) return value_of(*e.parts[0], scope);
  if (e.parts[2]) return value_of(*e.parts[2], scope);
  return Undefined{"a choice without else"};
}

Value Evaluator::operation_value(const Expression& e, const Scope& scope) {
  const Value a = value_of(*e.parts[0], scope), b = value_of(*e.parts[1], scope);
  at_ = e.at;
  return operation(e.text, a, b, work_);
}

Value Evaluator::slice_value(const Expression& e, const Scope& scope) {
  const Value value = value_of(*e.parts[0], scope);
  const Value begin = value_or_none(e.parts[1], scope), end = value_or_none(e.parts[2], scope);
  const Value step = value_or_none(e.parts[3], scope);
  at_ = e.at;
  return slice_of(value, begin, end, step, work_);
}

Given Evaluator::given_of(const Expression& e, std::string called, const Scope& scope) {
  std::vector<Value> plain;
  std::vector<std::pair<std::string, Value>> named;
  for (const Argument& a : e.arguments) {
    Value value = value_of(*a.value, scope);
    if (a.name.empty())
      plain.push_back(std::move(value));
    else
      named.emplace_back(a.name, std::move(value));
  }
  at_ = e.at;
  return Given(std::move(called), std::move(plain), std::move(named));
}

Value Evaluator::call_value(const Expression& e, const Scope& scope) {
  const Value called = value_of(*e.parts[0], scope);
  at_ = e.at;
  if (called.is_undefined())
    fail("the function " + in_quotes(called.missing_name()) + " is undefined");
  if (!called.is(Value::Type::Function)) fail(std::string(type_name(called)) + " is no function");
  return called.function().call(given_of(e, called.function().name, scope), work_);
}

Value Evaluator::filtered(const Expression& e, const Value& value, const Scope& scope) {
  const Given given = given_of(e, e.text, scope);
  at_ = e.at;
  return find_filter(e.text)->apply(value, given, work_);
}

Value Evaluator::tested(const Expression& e, const Scope& scope) {
  const Value value = value_of(*e.parts[0], scope);
  const Given given = given_of(e, e.text, scope);
  at_ = e.at;
  return Value(find_test(e.text)->holds(value, given, work_));
}

}  // namespace aloft::chat

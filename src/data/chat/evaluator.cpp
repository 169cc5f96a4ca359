#include "data/chat/evaluator.h"

#include <utility>

#include "base/text.h"
#include "data/chat/filters.h"
#include "data/chat/value_text.h"

namespace aloft::chat {

void Scope::set(const std::string& name, Value value) {
  for (auto& [known, old] : names_)
    if (known == name) {
      old = std::move(value);
      return;
    }
  names_.emplace_back(name, std::move(value));
}

const Value* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer_)
    for (const auto& [known, value] : scope->names_)
      if (known == name) return &value;
  return nullptr;
}

Evaluator::Evaluator(const std::vector<std::pair<std::string, Value>>& variables, std::int64_t now,
                     std::int64_t work)
    : work_(work), around_{.now = now}, root_(nullptr) {
  for (const auto& [name, value] : variables) root_.set(name, value);
}

void Evaluator::run(const Body& body) { run(body, root_); }

Evaluator::Flow Evaluator::run(const Body& body, Scope& scope) {
  for (const Statement& s : body)
    if (const Flow flow = run(s, scope); flow != Flow::Next) return flow;
  return Flow::Next;
}

void Evaluator::go_deeper() {
  constexpr int kDeepest = 1000;
  if (depth_ >= kDeepest) fail("macros that call one another too deeply");
  ++depth_;
}

Evaluator::Flow Evaluator::run(const Statement& s, Scope& scope) {
  at_ = s.at;
  work_.spend(1);
  go_deeper();
  const Flow flow = run_kind(s, scope);
  --depth_;
  return flow;
}

Evaluator::Flow Evaluator::run_kind(const Statement& s, Scope& scope) {
  using Kind = Statement::Kind;
  switch (s.kind) {
    case Kind::Text:
      print(s.text);
      break;
    case Kind::Print:
      print(to_text(value_of(*s.value, scope), work_));
      break;
    case Kind::If:
      return run_if(s, scope);
    case Kind::For:
      return run_for(s, scope);
    case Kind::Set:
      assign(s.target, value_of(*s.value, scope), scope);
      break;
    case Kind::SetBlock:
      assign(s.target, block_value(s, scope), scope);
      break;
    case Kind::Macro:
      scope.set(s.text, macro_value(s, scope));
      break;
    case Kind::Generation:
      run_generation(s, scope);
      break;
    case Kind::Break:
      return Flow::Break;
    case Kind::Continue:
      return Flow::Continue;
  }
  return Flow::Next;
}

void Evaluator::print(std::string_view text) {
  work_.spend(static_cast<std::int64_t>(text.size() / 32));
  *out_ += text;
}

Evaluator::Flow Evaluator::run_if(const Statement& s, Scope& scope) {
  for (const Branch& branch : s.branches)
    if (is_true(value_of(*branch.test, scope))) return run(branch.body, scope);
  return run(s.otherwise, scope);
}

// What a loop goes through: the items that its filter leaves.
std::vector<Value> Evaluator::chosen(const Statement& s, Scope& scope) {
  const Value all = value_of(*s.value, scope);
  at_ = s.at;
  std::vector<Value> items = items_of(all, work_);
  if (!s.filter) return items;
  std::vector<Value> left;
  for (Value& item : items) {
    Scope inner(&scope);
    assign(s.target, item, inner);
    if (is_true(value_of(*s.filter, inner))) left.push_back(std::move(item));
  }
  return left;
}

Evaluator::Flow Evaluator::run_for(const Statement& s, Scope& scope) {
  const std::vector<Value> items = chosen(s, scope);
  if (items.empty()) return run(s.otherwise, scope);
  for (std::size_t i = 0; i < items.size(); ++i) {
    Scope inner(&scope);
    at_ = s.at;
    work_.spend(s.text.empty() ? 1 : 12);
    if (!s.text.empty()) inner.set("loop", loop_value(items, i));
    assign(s.target, items[i], inner);
    if (run(s.body, inner) == Flow::Break) break;
  }
  return Flow::Next;
}

// The depth counts recursive loops alone, of which there are none.
Value Evaluator::loop_value(const std::vector<Value>& items, std::size_t at) const {
  const auto whole = [](std::size_t n) { return Value(static_cast<std::int64_t>(n)); };
  const std::size_t count = items.size();
  const auto not_done = [](const char* name) {
    return make_function(name, [name](const Given&, Work&) -> Value {
      fail(std::string(name) + "() is not done here");
    });
  };
  return make_dict(
      {{Value("index"), whole(at + 1)},
       {Value("index0"), whole(at)},
       {Value("first"), Value(at == 0)},
       {Value("last"), Value(at + 1 == count)},
       {Value("length"), whole(count)},
       {Value("revindex"), whole(count - at)},
       {Value("revindex0"), whole(count - at - 1)},
       {Value("previtem"), at > 0 ? items[at - 1] : Undefined{"loop.previtem"}},
       {Value("nextitem"), at + 1 < count ? items[at + 1] : Undefined{"loop.nextitem"}},
       {Value("depth"), whole(1)},
       {Value("depth0"), whole(0)},
       {Value("cycle"), not_done("loop.cycle")},
       {Value("changed"), not_done("loop.changed")}});
}

void Evaluator::assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.attribute.empty()) return assign_attribute(target, value, scope);
  if (!target.is_unpacked) return scope.set(target.names[0], value);
  const std::vector<Value> items = items_of(value, work_);
  if (items.size() != target.names.size())
    fail(std::to_string(target.names.size()) + " names for " + std::to_string(items.size()) +
         " values");
  for (std::size_t i = 0; i < items.size(); ++i) scope.set(target.names[i], items[i]);
}

void Evaluator::assign_attribute(const Target& target, const Value& value, Scope& scope) {
  const Value* space = scope.find(target.names[0]);
  if (!space || !space->is(Value::Type::Namespace))
    fail(in_quotes(target.names[0]) + " is no namespace: its attributes cannot be set");
  if (target.attribute.starts_with('_')) fail("a namespace's name begins with _");
  auto& items = space->space().items;
  for (auto& [name, old] : items)
    if (name == target.attribute) {
      old = value;
      return;
    }
  items.emplace_back(target.attribute, value);
}

std::string Evaluator::captured(const Body& body, Scope& scope) {
  std::string text;
  std::string* const before = std::exchange(out_, &text);
  run(body, scope);  // ends the rendering where it throws
  out_ = before;
  return text;
}

Value Evaluator::block_value(const Statement& s, Scope& scope) {
  Scope inner(&scope);
  Value value(captured(s.body, inner));
  for (const ExpressionPtr& filter : s.filters) value = filtered(*filter, value, scope);
  return value;
}

Value Evaluator::macro_value(const Statement& s, Scope& scope) {
  return make_function(s.text, [this, &s, &scope](const Given& given, Work&) {
    return call_macro(s, scope, given);
  });
}

// `outer` is the template's own scope: macros are nowhere else.
Value Evaluator::call_macro(const Statement& s, Scope& outer, const Given& given) {
  std::vector<std::string_view> names;
  for (const Argument& p : s.parameters) names.push_back(p.name);
  const std::vector<const Value*> values = given.by_names(names, 0);
  Scope inner(&outer);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Argument& p = s.parameters[i];
    if (values[i])
      inner.set(p.name, *values[i]);
    else
      inner.set(p.name, p.value ? value_of(*p.value, inner) : Value(Undefined{p.name}));
  }
  return Value(captured(s.body, inner));
}

void Evaluator::run_generation(const Statement& s, Scope& scope) {
  if (out_ != &text_)
    fail("generation within a macro or block, of which it is not known where it is printed");
  Scope inner(&scope);
  const std::size_t begin = text_.size();
  run(s.body, inner);
  generated_.push_back({begin, text_.size()});
}

}  // namespace aloft::chat

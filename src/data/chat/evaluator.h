// Runs a template's tree over a conversation.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/chat/callable.h"
#include "data/chat/functions.h"
#include "data/chat/syntax.h"
#include "data/chat/value.h"

namespace aloft::chat {

// Names that are set, and those around them. A loop's round, a macro and a block have their own; an
// `if` has none.
class Scope {
 public:
  explicit Scope(const Scope* outer) : outer_(outer) {}

  void set(const std::string& name, Value value);
  const Value* find(const std::string& name) const;  // null where there is none

 private:
  const Scope* outer_;
  std::vector<std::pair<std::string, Value>> names_;
};

// Bytes of a text.
struct Span {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

class Evaluator {
 public:
  // `variables`: what the template is given by name.
  Evaluator(const std::vector<std::pair<std::string, Value>>& variables, std::int64_t now,
            std::int64_t work);

  // Failure, and Raised where the template refuses the conversation; place() says where.
  void run(const Body& body);

  const std::string& text() const { return text_; }
  // Of the text, what blocks of `generation` printed.
  const std::vector<Span>& generated() const { return generated_; }
  std::size_t place() const { return at_; }  // byte of the source

 private:
  enum class Flow { Next, Break, Continue };

  Flow run(const Body& body, Scope& scope);
  Flow run(const Statement& s, Scope& scope);
  Flow run_kind(const Statement& s, Scope& scope);
  Flow run_if(const Statement& s, Scope& scope);
  Flow run_for(const Statement& s, Scope& scope);
  void run_generation(const Statement& s, Scope& scope);
  std::vector<Value> chosen(const Statement& s, Scope& scope);
  Value loop_value(const std::vector<Value>& items, std::size_t at) const;
  void assign(const Target& target, const Value& value, Scope& scope);
  void assign_attribute(const Target& target, const Value& value, Scope& scope);
  Value block_value(const Statement& s, Scope& scope);
  std::string captured(const Body& body, Scope& scope);
  Value macro_value(const Statement& s, Scope& scope);
  Value call_macro(const Statement& s, Scope& outer, const Given& given);
  void print(std::string_view text);
  void go_deeper();  // Failure where macros that call one another go too deep

  Value value_of(const Expression& e, const Scope& scope);
  Value value_of_kind(const Expression& e, const Scope& scope);
  Value value_or_none(const ExpressionPtr& e, const Scope& scope);
  Value name_value(const Expression& e, const Scope& scope);
  Value list_value(const Expression& e, const Scope& scope);
  Value dict_value(const Expression& e, const Scope& scope);
  Value joined_value(const Expression& e, const Scope& scope);
  Value compared_value(const Expression& e, const Scope& scope);
  Value choice_value(const Expression& e, const Scope& scope);
  Value operation_value(const Expression& e, const Scope& scope);
  Value slice_value(const Expression& e, const Scope& scope);
  Value call_value(const Expression& e, const Scope& scope);
  Value filtered(const Expression& e, const Value& value, const Scope& scope);
  Value tested(const Expression& e, const Scope& scope);
  Given given_of(const Expression& e, std::string called, const Scope& scope);

  Work work_;
  Surroundings around_;
  Scope root_;
  std::string text_;
  std::string* out_ = &text_;  // where is printed to: the text, or what a block captures
  std::vector<Span> generated_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace aloft::chat

// Inside: the parser of expressions, by Jinja's precedence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/chat/syntax.h"
#include "data/chat/token_stream.h"

namespace aloft::chat {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // With `a if b else c`, unless `with_choice` is false.
  ExpressionPtr expression(bool with_choice = true);
  // Also `a, b`: a tuple. Ends before the name `end`, too.
  ExpressionPtr tuple(bool with_choice = true, std::string_view end = {});
  // Behind `|`: the filter of `parts`, which may be empty.
  ExpressionPtr filter(std::vector<ExpressionPtr> parts);
  // Behind `(`, and the closing bracket.
  std::vector<Argument> arguments();
  // How often the name `loop` was met.
  int loops_read() const { return loops_read_; }

 private:
  using Kind = Expression::Kind;
  class Deeper;

  ExpressionPtr choice();
  ExpressionPtr or_expression();
  ExpressionPtr and_expression();
  ExpressionPtr not_expression();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr joined();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr signed_value(bool with_filters = true);
  ExpressionPtr primary();
  ExpressionPtr name_or_constant();
  ExpressionPtr number();
  ExpressionPtr string();
  ExpressionPtr in_brackets();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr with_accesses(ExpressionPtr value);
  ExpressionPtr with_filters(ExpressionPtr value);
  ExpressionPtr attribute(ExpressionPtr value);
  ExpressionPtr subscript(ExpressionPtr value);
  ExpressionPtr call(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  std::string comparison_operator();

  Expression begin(Kind kind, std::string text = {}) const;
  ExpressionPtr finish(Expression e) const;

  TokenStream& tokens_;
  int depth_ = 0, loops_read_ = 0;
};

}  // namespace aloft::chat

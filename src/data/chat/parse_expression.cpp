#include "data/chat/parse_expression.h"

#include <algorithm>

#include "base/text.h"
#include "data/chat/filters.h"
#include "data/chat/tests.h"

namespace aloft::chat {
namespace {

constexpr std::string_view kTooDeep = "expressions that are nested too deeply";

std::vector<ExpressionPtr> parts_of(ExpressionPtr a, ExpressionPtr b = nullptr) {
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(a));
  if (b) parts.push_back(std::move(b));
  return parts;
}

}  // namespace

// While one is alive, the parser is a level deeper.
class ExpressionParser::Deeper {
 public:
  explicit Deeper(ExpressionParser& parser) : parser_(parser) {
    if (++parser.depth_ > kDeepestSyntax)
      throw Mistake{parser.tokens_.now().at, std::string(kTooDeep), "fewer brackets"};
  }
  ~Deeper() { --parser_.depth_; }

 private:
  ExpressionParser& parser_;
};

Expression ExpressionParser::begin(Kind kind, std::string text) const {
  Expression e;
  e.kind = kind;
  e.at = tokens_.now().at;
  e.text = std::move(text);
  return e;
}

ExpressionPtr ExpressionParser::finish(Expression e) const {
  int deepest = 0;
  for (const ExpressionPtr& part : e.parts)
    if (part) deepest = std::max(deepest, part->depth);
  for (const Argument& a : e.arguments) deepest = std::max(deepest, a.value->depth);
  e.depth = deepest + 1;
  if (e.depth > kDeepestSyntax)
    throw Mistake{e.at, std::string(kTooDeep), "several expressions, by `set`"};
  return std::make_unique<const Expression>(std::move(e));
}

ExpressionPtr ExpressionParser::expression(bool with_choice) {
  const Deeper deeper(*this);
  return with_choice ? choice() : or_expression();
}

ExpressionPtr ExpressionParser::tuple(bool with_choice, std::string_view end) {
  Expression all = begin(Kind::Tuple);
  bool is_tuple = false;
  for (;;) {
    const bool is_end = tokens_.is(TokenKind::VariableEnd) || tokens_.is(TokenKind::BlockEnd) ||
                        tokens_.is_operator(")") || (!end.empty() && tokens_.is_name(end));
    if (is_end) break;
    all.parts.push_back(expression(with_choice));
    if (!tokens_.take_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return finish(std::move(all));
  if (all.parts.empty()) tokens_.fail("an expression");
  return std::move(all.parts[0]);
}

ExpressionPtr ExpressionParser::choice() {
  ExpressionPtr value = or_expression();
  while (tokens_.is_name("if")) {
    Expression e = begin(Kind::Choice);
    tokens_.take();
    e.parts = parts_of(std::move(value), or_expression());
    const Deeper deeper(*this);
    e.parts.push_back(tokens_.take_name("else") ? choice() : nullptr);
    value = finish(std::move(e));
  }
  return value;
}

ExpressionPtr ExpressionParser::or_expression() {
  ExpressionPtr left = and_expression();
  while (tokens_.is_name("or")) {
    Expression e = begin(Kind::Or);
    tokens_.take();
    e.parts = parts_of(std::move(left), and_expression());
    left = finish(std::move(e));
  }
  return left;
}

ExpressionPtr ExpressionParser::and_expression() {
  ExpressionPtr left = not_expression();
  while (tokens_.is_name("and")) {
    Expression e = begin(Kind::And);
    tokens_.take();
    e.parts = parts_of(std::move(left), not_expression());
    left = finish(std::move(e));
  }
  return left;
}

ExpressionPtr ExpressionParser::not_expression() {
  if (!tokens_.is_name("not")) return comparison();
  const Deeper deeper(*this);
  Expression e = begin(Kind::Not);
  tokens_.take();
  e.parts = parts_of(not_expression());
  return finish(std::move(e));
}

// Taken where there is one; "" where there is none.
std::string ExpressionParser::comparison_operator() {
  constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
  for (const std::string_view text : kOperators)
    if (tokens_.take_operator(text)) return std::string(text);
  if (tokens_.take_name("in")) return "in";
  const Token& ahead = tokens_.ahead();
  if (!tokens_.is_name("not") || ahead.kind != TokenKind::Name || ahead.value != "in") return "";
  tokens_.take();
  tokens_.take();
  return "not in";
}

ExpressionPtr ExpressionParser::comparison() {
  Expression e = begin(Kind::Compare);
  e.parts = parts_of(sum());
  for (;;) {
    std::string text = comparison_operator();
    if (text.empty()) break;
    e.operators.push_back(std::move(text));
    e.parts.push_back(sum());
  }
  return e.operators.empty() ? std::move(e.parts[0]) : finish(std::move(e));
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = joined();
  while (tokens_.is_operator("+") || tokens_.is_operator("-")) {
    Expression e = begin(Kind::Operation, tokens_.now().value);
    tokens_.take();
    e.parts = parts_of(std::move(left), joined());
    left = finish(std::move(e));
  }
  return left;
}

ExpressionPtr ExpressionParser::joined() {
  Expression e = begin(Kind::Join);
  e.parts = parts_of(product());
  while (tokens_.take_operator("~")) e.parts.push_back(product());
  return e.parts.size() == 1 ? std::move(e.parts[0]) : finish(std::move(e));
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr left = power();
  while (tokens_.is_operator("*") || tokens_.is_operator("/") || tokens_.is_operator("//") ||
         tokens_.is_operator("%")) {
    Expression e = begin(Kind::Operation, tokens_.now().value);
    tokens_.take();
    e.parts = parts_of(std::move(left), power());
    left = finish(std::move(e));
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = signed_value();
  while (tokens_.is_operator("**")) {
    Expression e = begin(Kind::Operation, "**");
    tokens_.take();
    e.parts = parts_of(std::move(left), signed_value());
    left = finish(std::move(e));
  }
  return left;
}

ExpressionPtr ExpressionParser::signed_value(bool with_filters_too) {
  ExpressionPtr value;
  if (tokens_.is_operator("-") || tokens_.is_operator("+")) {
    const Deeper deeper(*this);
    Expression e = begin(Kind::Sign, tokens_.now().value);
    tokens_.take();
    e.parts = parts_of(signed_value(false));
    value = finish(std::move(e));
  } else {
    value = primary();
  }
  value = with_accesses(std::move(value));
  return with_filters_too ? with_filters(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::primary() {
  if (tokens_.is(TokenKind::Name)) return name_or_constant();
  if (tokens_.is(TokenKind::String)) return string();
  if (tokens_.is(TokenKind::Integer) || tokens_.is(TokenKind::Float)) return number();
  if (tokens_.is_operator("(")) return in_brackets();
  if (tokens_.is_operator("[")) return list();
  if (tokens_.is_operator("{")) return dict();
  tokens_.fail("an expression");
}

ExpressionPtr ExpressionParser::name_or_constant() {
  Expression e = begin(Kind::Name, tokens_.now().value);
  tokens_.take();
  if (e.text == "loop") ++loops_read_;
  const bool is_true_word = e.text == "true" || e.text == "True";
  const bool is_false_word = e.text == "false" || e.text == "False";
  const bool is_none_word = e.text == "none" || e.text == "None";
  if (is_true_word || is_false_word || is_none_word) e.kind = Kind::Constant;
  if (is_true_word || is_false_word) e.constant = Value(is_true_word);
  return finish(std::move(e));
}

ExpressionPtr ExpressionParser::number() {
  Expression e = begin(Kind::Constant, tokens_.now().value);
  const bool is_whole = tokens_.is(TokenKind::Integer);
  tokens_.take();
  if (is_whole) {
    const auto n = parse_int(e.text);
    if (!n) throw Mistake{e.at, in_quotes(e.text), "a number of 64 bits"};
    e.constant = Value(*n);
  } else {
    const auto x = parse_double(e.text);
    if (!x) throw Mistake{e.at, in_quotes(e.text), "a number that a double holds"};
    e.constant = Value(*x);
  }
  return finish(std::move(e));
}

// Strings that follow one another are one.
ExpressionPtr ExpressionParser::string() {
  Expression e = begin(Kind::Constant);
  std::string text;
  while (tokens_.is(TokenKind::String)) text += tokens_.take().value;
  e.constant = Value(std::move(text));
  return finish(std::move(e));
}

ExpressionPtr ExpressionParser::in_brackets() {
  Expression empty = begin(Kind::Tuple);
  tokens_.take();
  if (tokens_.take_operator(")")) return finish(std::move(empty));
  ExpressionPtr value = tuple();
  tokens_.need_operator(")");
  return value;
}

ExpressionPtr ExpressionParser::list() {
  Expression e = begin(Kind::List);
  tokens_.take();
  while (!tokens_.is_operator("]")) {
    if (!e.parts.empty()) tokens_.need_operator(",");
    if (tokens_.is_operator("]")) break;
    e.parts.push_back(expression());
  }
  tokens_.take();
  return finish(std::move(e));
}

ExpressionPtr ExpressionParser::dict() {
  Expression e = begin(Kind::Dict);
  tokens_.take();
  while (!tokens_.is_operator("}")) {
    if (!e.parts.empty()) tokens_.need_operator(",");
    if (tokens_.is_operator("}")) break;
    e.parts.push_back(expression());
    tokens_.need_operator(":");
    e.parts.push_back(expression());
  }
  tokens_.take();
  return finish(std::move(e));
}

ExpressionPtr ExpressionParser::with_accesses(ExpressionPtr value) {
  for (;;) {
    if (tokens_.is_operator("."))
      value = attribute(std::move(value));
    else if (tokens_.is_operator("["))
      value = subscript(std::move(value));
    else if (tokens_.is_operator("("))
      value = call(std::move(value));
    else
      return value;
  }
}

ExpressionPtr ExpressionParser::with_filters(ExpressionPtr value) {
  for (;;) {
    if (tokens_.take_operator("|"))
      value = filter(parts_of(std::move(value)));
    else if (tokens_.is_name("is"))
      value = test(std::move(value));
    else if (tokens_.is_operator("("))
      value = call(std::move(value));
    else
      return value;
  }
}

ExpressionPtr ExpressionParser::attribute(ExpressionPtr value) {
  tokens_.take();
  Expression e = begin(Kind::Attribute, tokens_.now().value);
  e.parts = parts_of(std::move(value));
  if (tokens_.is(TokenKind::Integer)) {
    e.kind = Kind::Subscript;
    e.parts.push_back(number());
    return finish(std::move(e));
  }
  tokens_.need_name("an attribute's name or number");
  return finish(std::move(e));
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr value) {
  tokens_.take();
  Expression e = begin(Kind::Subscript);
  e.parts = parts_of(std::move(value));
  const auto is_bound_missing = [&] {
    return tokens_.is_operator(":") || tokens_.is_operator("]");
  };
  e.parts.push_back(tokens_.is_operator(":") ? nullptr : expression());
  while (tokens_.is_operator(":") && e.parts.size() < 4) {
    tokens_.take();
    e.kind = Kind::Slice;
    e.parts.push_back(is_bound_missing() ? nullptr : expression());
  }
  if (tokens_.is_operator(",")) tokens_.fail("\"]\": several indices are not done here");
  tokens_.need_operator("]");
  if (e.kind == Kind::Slice) e.parts.resize(4);
  return finish(std::move(e));
}

std::vector<Argument> ExpressionParser::arguments() {
  std::vector<Argument> all;
  tokens_.need_operator("(");
  while (!tokens_.is_operator(")")) {
    if (!all.empty()) tokens_.need_operator(",");
    if (tokens_.is_operator(")")) break;
    if (tokens_.is_operator("*") || tokens_.is_operator("**"))
      tokens_.fail("arguments one by one: * and ** are not done here");
    Argument a;
    const Token& ahead = tokens_.ahead();
    if (tokens_.is(TokenKind::Name) && ahead.kind == TokenKind::Operator && ahead.value == "=") {
      a.name = tokens_.take().value;
      tokens_.take();
    } else if (!all.empty() && !all.back().name.empty()) {
      tokens_.fail("name=value: arguments without a name come first");
    }
    a.value = expression();
    all.push_back(std::move(a));
  }
  tokens_.take();
  return all;
}

ExpressionPtr ExpressionParser::call(ExpressionPtr value) {
  Expression e = begin(Kind::Call);
  e.parts = parts_of(std::move(value));
  e.arguments = arguments();
  return finish(std::move(e));
}

ExpressionPtr ExpressionParser::filter(std::vector<ExpressionPtr> parts) {
  Expression e = begin(Kind::Filter, tokens_.now().value);
  e.parts = std::move(parts);
  tokens_.need_name("a filter's name");
  if (!find_filter(e.text))
    throw Mistake{e.at, "the filter " + in_quotes(e.text), "one of these: " + names_of_filters()};
  if (tokens_.is_operator("(")) e.arguments = arguments();
  return finish(std::move(e));
}

ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  tokens_.take();
  const std::size_t at = tokens_.now().at;
  const bool is_negated = tokens_.take_name("not");
  Expression e = begin(Kind::Test, tokens_.now().value);
  e.parts = parts_of(std::move(value));
  tokens_.need_name("a test's name");
  if (!find_test(e.text))
    throw Mistake{e.at, "the test " + in_quotes(e.text), "one of these: " + names_of_tests()};
  const bool is_word = tokens_.is(TokenKind::Name) && !tokens_.is_name("else") &&
                       !tokens_.is_name("or") && !tokens_.is_name("and");
  if (tokens_.is_operator("(")) {
    e.arguments = arguments();
  } else if (is_word || tokens_.is(TokenKind::String) || tokens_.is(TokenKind::Integer) ||
             tokens_.is(TokenKind::Float) || tokens_.is_operator("[") || tokens_.is_operator("{")) {
    if (tokens_.is_name("is")) tokens_.fail("`and` between two tests");
    const Deeper deeper(*this);
    e.arguments.push_back({"", with_accesses(primary())});
  }
  if (!is_negated) return finish(std::move(e));
  Expression negated = begin(Kind::Not);
  negated.at = at;
  negated.parts = parts_of(finish(std::move(e)));
  return finish(std::move(negated));
}

}  // namespace aloft::chat

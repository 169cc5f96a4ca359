// Inside: the words of a template, one after the other, for the parsers of expressions and of
// statements.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "data/chat/lexer.h"

namespace aloft::chat {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }

  bool is(TokenKind kind) const { return now().kind == kind; }
  bool is_operator(std::string_view text) const {
    return now().kind == TokenKind::Operator && now().value == text;
  }
  bool is_name(std::string_view text) const {
    return now().kind == TokenKind::Name && now().value == text;
  }
  bool take_operator(std::string_view text) {
    const bool is_it = is_operator(text);
    if (is_it) take();
    return is_it;
  }
  bool take_name(std::string_view text) {
    const bool is_it = is_name(text);
    if (is_it) take();
    return is_it;
  }

  // Mistake unless it comes now.
  void need_operator(std::string_view text) {
    if (!take_operator(text)) fail("\"" + std::string(text) + "\"");
  }
  void need(TokenKind kind, const std::string& what) {
    if (!is(kind)) fail(what);
    take();
  }
  std::string need_name(const std::string& what) {
    if (!is(TokenKind::Name)) fail(what);
    return take().value;
  }
  // A Mistake at the word that is now.
  [[noreturn]] void fail(const std::string& need) const {
    throw Mistake{now().at, description(now()), need};
  }
  static std::string description(const Token& token);

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace aloft::chat

// A template cut into text and the words of its tags, by Jinja's rules of white space as
// transformers sets them: the line end behind a tag goes (trim_blocks), and so does the indentation
// before one (lstrip_blocks); `-` at a tag's end takes all white space there, `+` leaves it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace aloft::chat {

enum class TokenKind {
  Text,           // between tags; its value is what is printed
  VariableBegin,  // {{
  VariableEnd,    // }}
  BlockBegin,     // {%
  BlockEnd,       // %}
  Name,
  String,  // its value, without quotes and escapes
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string value;
  std::size_t at = 0;  // byte of the source
};

// What is wrong with a template, and where.
struct Mistake {
  std::size_t at = 0;  // byte of the source
  std::string saw, need;
};

// The text of a template as Jinja takes it: line ends as \n, and none at the very end.
std::string source_of(std::string_view text);
// Line and column of a byte, both from 1: "3:14".
std::string place_in(std::string_view source, std::size_t at);

// The last one is End. Throws Mistake.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace aloft::chat

// What a template says, as a tree. It is at most kDeepestSyntax deep, so that whatever goes through
// it may do so by recursion.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "data/chat/value.h"

namespace aloft::chat {

inline constexpr int kDeepestSyntax = 200;

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

// `name=value`, or a value alone.
struct Argument {
  std::string name;
  ExpressionPtr value;  // null: a parameter of a macro without a default
};

struct Expression {
  enum class Kind {
    Constant,
    Name,       // text
    List,       // parts
    Tuple,      // parts
    Dict,       // parts: key, value, key, value ...
    Sign,       // text (+ or -) before parts[0]
    Operation,  // parts[0] text parts[1]
    Join,       // parts, with ~ between
    Not,
    And,
    Or,
    Compare,    // parts, with operators[i] between parts[i] and parts[i + 1]
    Choice,     // parts[0] if parts[1] else parts[2], which may be null
    Attribute,  // parts[0].text
    Subscript,  // parts[0][parts[1]]
    Slice,      // parts[0][parts[1]:parts[2]:parts[3]], each but the first may be null
    Call,       // parts[0](arguments)
    Filter,     // parts[0]|text(arguments)
    Test,       // parts[0] is text(arguments)
  };
  Kind kind = Kind::Constant;
  std::size_t at = 0;  // byte of the source
  int depth = 1;
  std::string text = {};
  Value constant = {};
  std::vector<ExpressionPtr> parts = {};
  std::vector<std::string> operators = {};
  std::vector<Argument> arguments = {};
};

struct Statement;
using Body = std::vector<Statement>;

// What `set` and `for` give a value to: names, or an attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  bool is_unpacked = false;  // each name gets an item, were it only one: `for x, in`
  std::string attribute;     // of names[0]; empty: none
};

struct Branch {
  ExpressionPtr test;
  Body body;
};

struct Statement {
  enum class Kind {
    Text,
    Print,
    If,          // branches, otherwise
    For,         // target in value, if filter: body, otherwise; text: "loop" where it is read
    Set,         // target = value
    SetBlock,    // target = what the body prints, through the filters
    Macro,       // text(parameters): body
    Generation,  // the body is the assistant's words
    Break,
    Continue,
  };
  Kind kind = Kind::Text;
  std::size_t at = 0;
  std::string text = {};
  ExpressionPtr value = {}, filter = {};
  std::vector<ExpressionPtr> filters = {};  // each without parts
  Target target = {};
  std::vector<Argument> parameters = {};
  std::vector<Branch> branches = {};
  Body body = {}, otherwise = {};
};

}  // namespace aloft::chat

// Chat templates: how a model wants a conversation written, in the part of Jinja that templates
// use (docs/chat-templates.md). What is rendered is what transformers' apply_chat_template gives.
//
// The map of this folder:
//   lexer.h, token_stream.h             text -> words of tags
//   parse_expression.h, parser.h        -> syntax.h, a tree
//   value.h, value_text.h, characters.h values as Python has them, and as text
//   operators.h, methods.h, filters.h, tests.h, functions.h   what a template may do with them
//   evaluator.h                         runs the tree
//   conversation.h                      a conversation as templates are given it
//   assistant_words.h                   which bytes are the assistant's words
//   load_chat_template.h                where models keep theirs
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/chat/evaluator.h"

namespace aloft {

// What a template is given.
struct ChatInput {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();  // objects, mostly with role
                                                                      // and content
  nlohmann::ordered_json tools = nullptr, documents = nullptr;        // null: none
  bool add_generation_prompt = false;  // whether the text ends where the assistant's words begin
  // By name: bos_token, eos_token and the like, and whatever a template reads besides.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
};

struct RenderLimits {
  // Steps, where 32 bytes of text count as one, too: what a program that somebody else wrote may
  // cost. Conversations of a megabyte take some 100,000.
  std::int64_t work = 1 << 24;
  std::int64_t now = 0;  // seconds since 1970, for strftime_now; 0: the clock's
};

struct RenderedChat {
  std::string text;
  std::vector<chat::Span> generated;  // what blocks of `generation` printed
};

class ChatTemplate {
 public:
  // `name`: for messages, a file's. DataError E0540: what is no template, or has what is not done
  // here; the message names it, its line and column.
  ChatTemplate(std::string_view text, std::string name);

  // DataError E0541: the template cannot be carried out on this input, or does too much; E0542: it
  // refuses the conversation itself (raise_exception).
  RenderedChat render(const ChatInput& input, const RenderLimits& limits = {}) const;

  const std::string& name() const { return name_; }
  const std::string& source() const { return source_; }
  // Whether it has blocks of `generation`, which tell the assistant's words.
  bool has_generation() const { return has_generation_; }

 private:
  [[noreturn]] void refuse(const std::string& code, const std::string& headline, std::size_t at,
                           const std::string& saw, const std::string& need) const;

  std::string name_, source_;
  std::shared_ptr<const chat::Body> body_;
  bool has_generation_ = false;
};

}  // namespace aloft

#include "data/chat/parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "data/chat/parse_expression.h"
#include "data/chat/token_stream.h"

namespace aloft::chat {
namespace {

constexpr std::string_view kTags =
    "if, for, set, macro, generation, break or continue: no other tag is done here";

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokens_of(source)), expressions_(tokens_) {}

  Body whole() {
    Body body = until({});
    if (!tokens_.is(TokenKind::End)) tokens_.fail("the template's end");
    return body;
  }

 private:
  using Kind = Statement::Kind;

  Statement begin(Kind kind) const {
    Statement s;
    s.kind = kind;
    s.at = tokens_.now().at;
    return s;
  }

  // Statements up to a tag of one of these names, which is now behind its `{%`; of none: to the
  // template's end.
  Body until(std::vector<std::string_view> ends) {
    Body body;
    while (!tokens_.is(TokenKind::End)) {
      if (tokens_.is(TokenKind::Text)) {
        body.push_back(begin(Kind::Text));
        body.back().text = tokens_.take().value;
      } else if (tokens_.is(TokenKind::VariableBegin)) {
        body.push_back(print());
      } else {
        tokens_.need(TokenKind::BlockBegin, "a tag");
        if (tokens_.is(TokenKind::Name) &&
            std::find(ends.begin(), ends.end(), tokens_.now().value) != ends.end())
          return body;
        body.push_back(tag());
      }
    }
    if (!ends.empty()) tokens_.fail("{% " + std::string(ends.back()) + " %}");
    return body;
  }

  // The rest of a tag, and what follows up to one of the tags.
  Body block(std::vector<std::string_view> ends) {
    tokens_.take_operator(":");
    end_tag();
    return until(std::move(ends));
  }

  // With names of its own, left at its end alone.
  Body inner_block(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    const bool is_inside = std::exchange(is_inside_, true);
    Body body = block({end});
    loops_ = loops;
    is_inside_ = is_inside;
    return body;
  }

  void end_tag() { tokens_.need(TokenKind::BlockEnd, "the tag's end, %}"); }

  Statement print() {
    tokens_.take();
    Statement s = begin(Kind::Print);
    s.value = expressions_.tuple();
    tokens_.need(TokenKind::VariableEnd, "}}");
    return s;
  }

  Statement tag() {
    if (depth_ >= kDeepestSyntax) tokens_.fail("tags that are nested less deeply");
    ++depth_;
    Statement s = tag_of(tokens_.now().value);
    --depth_;
    return s;
  }

  Statement tag_of(const std::string& name) {
    if (tokens_.is(TokenKind::Name)) {
      if (name == "if") return if_tag();
      if (name == "for") return for_tag();
      if (name == "set") return set_tag();
      if (name == "macro") return macro_tag();
      if (name == "generation") return generation_tag();
      if (name == "break" || name == "continue") return leave_tag();
    }
    tokens_.fail(std::string(kTags));
  }

  Statement if_tag() {
    Statement s = begin(Kind::If);
    do {
      tokens_.take();
      Branch branch;
      branch.test = expressions_.tuple(false);
      branch.body = block({"elif", "else", "endif"});
      s.branches.push_back(std::move(branch));
    } while (tokens_.is_name("elif"));
    if (tokens_.take_name("else")) s.otherwise = block({"endif"});
    tokens_.take();
    end_tag();
    return s;
  }

  Statement for_tag() {
    Statement s = begin(Kind::For);
    tokens_.take();
    s.target = target("in");
    if (!tokens_.take_name("in")) tokens_.fail("\"in\"");
    s.value = expressions_.tuple(false, "recursive");
    if (tokens_.take_name("if")) s.filter = expressions_.expression();
    if (tokens_.is_name("recursive")) tokens_.fail("a loop that is not recursive");
    const bool is_inside = std::exchange(is_inside_, true);
    ++loops_;
    const int read_before = expressions_.loops_read();
    s.body = block({"endfor", "else"});
    if (expressions_.loops_read() > read_before) s.text = "loop";
    --loops_;
    is_inside_ = is_inside;
    if (tokens_.take_name("else")) s.otherwise = block({"endfor"});
    tokens_.take();
    end_tag();
    return s;
  }

  Statement set_tag() {
    Statement s = begin(Kind::Set);
    tokens_.take();
    s.target = target("");
    if (tokens_.take_operator("=")) {
      s.value = expressions_.tuple();
      end_tag();
      return s;
    }
    s.kind = Kind::SetBlock;
    if (s.target.is_unpacked) tokens_.fail("\"=\"");
    while (tokens_.take_operator("|")) s.filters.push_back(expressions_.filter({}));
    s.body = inner_block("endset");
    tokens_.take();
    end_tag();
    return s;
  }

  // `end`: the name before which it ends.
  Target target(std::string_view end) {
    Target t;
    t.names.push_back(assignable());
    if (tokens_.is_operator(".")) {
      tokens_.take();
      t.attribute = tokens_.need_name("an attribute's name");
      return t;
    }
    while (tokens_.take_operator(",")) {
      t.is_unpacked = true;
      if (tokens_.is_operator("=") || (!end.empty() && tokens_.is_name(end))) break;
      t.names.push_back(assignable());
    }
    return t;
  }

  std::string assignable() {
    constexpr std::array<std::string_view, 6> kConstants = {"true",  "True", "false",
                                                            "False", "none", "None"};
    const bool is_constant =
        std::find(kConstants.begin(), kConstants.end(), tokens_.now().value) != kConstants.end();
    if (is_constant || tokens_.is_name("loop")) tokens_.fail("a name that may be set");
    return tokens_.need_name("a name to be set");
  }

  Statement macro_tag() {
    Statement s = begin(Kind::Macro);
    if (is_inside_) tokens_.fail("a macro outside of loops, macros and blocks");
    tokens_.take();
    s.text = assignable();
    tokens_.need_operator("(");
    while (!tokens_.is_operator(")")) {
      if (!s.parameters.empty()) tokens_.need_operator(",");
      Argument a;
      a.name = assignable();
      if (tokens_.take_operator("=")) a.value = expressions_.expression();
      if (!a.value && !s.parameters.empty() && s.parameters.back().value)
        tokens_.fail("\"=\": a default, as the parameter before has one");
      s.parameters.push_back(std::move(a));
    }
    tokens_.take();
    s.body = inner_block("endmacro");
    tokens_.take();
    end_tag();
    return s;
  }

  Statement generation_tag() {
    Statement s = begin(Kind::Generation);
    tokens_.take();
    s.body = inner_block("endgeneration");
    tokens_.take();
    end_tag();
    return s;
  }

  Statement leave_tag() {
    Statement s = begin(tokens_.is_name("break") ? Kind::Break : Kind::Continue);
    if (loops_ == 0) tokens_.fail("a loop around it");
    tokens_.take();
    end_tag();
    return s;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0, loops_ = 0;
  bool is_inside_ = false;  // of what has names of its own
};

}  // namespace

Body parse_template(std::string_view source) { return Parser(source).whole(); }

}  // namespace aloft::chat

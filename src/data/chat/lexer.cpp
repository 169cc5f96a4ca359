#include "data/chat/lexer.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "data/chat/characters.h"
#include "data/tokenizers/utf8.h"

namespace aloft::chat {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// The value of a string's inside, by Python's escapes; an unknown one stays as it is.
class Unescaper {
 public:
  Unescaper(std::string_view inside, std::size_t at) : inside_(inside), begin_(at) {}

  std::string text() {
    std::string out;
    while (at_ < inside_.size()) {
      if (inside_[at_] != '\\')
        out += inside_[at_++];
      else
        escape(out);
    }
    return out;
  }

 private:
  void escape(std::string& out) {
    constexpr std::string_view kNamed = "abfnrtv\\'\"", kMeant = "\a\b\f\n\r\t\v\\'\"";
    const std::size_t begin = at_;
    const char c = inside_[at_ + 1];  // the reader of strings saw that there is one
    at_ += 2;
    if (const std::size_t named = kNamed.find(c); named != std::string_view::npos)
      out += kMeant[named];
    else if (c == 'x' || c == 'u' || c == 'U')
      code(out, begin, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    else if (c >= '0' && c <= '7')
      octal(out, c);
    else if (c == 'N')
      throw Mistake{begin_ + begin, "a character by its name, \\N{...}", "the character itself"};
    else if (c != '\n')
      out += '\\', out += c;
  }

  void octal(std::string& out, char first) {
    char32_t code = static_cast<char32_t>(first - '0');
    for (int i = 0; i < 2 && at_ < inside_.size() && inside_[at_] >= '0' && inside_[at_] <= '7';
         ++i)
      code = code * 8 + static_cast<char32_t>(inside_[at_++] - '0');
    utf8::append(out, code);
  }

  void code(std::string& out, std::size_t begin, std::size_t digits, int base) {
    const std::string_view text = inside_.substr(at_, digits);
    const bool is_hex = text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
                          return std::isxdigit(static_cast<unsigned char>(c)) != 0;
                        });
    const unsigned long value = is_hex ? std::stoul(std::string(text), nullptr, base) : ~0UL;
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      throw Mistake{begin_ + begin, "an escape that is no character", "a character's number"};
    utf8::append(out, static_cast<char32_t>(value));
    at_ += digits;
  }

  std::string_view inside_;
  std::size_t begin_, at_ = 0;
};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> tokens() {
    while (at_ < source_.size()) {
      const std::size_t tag = next_tag();
      add_text(tag);
      at_ = tag;
      if (tag < source_.size()) read_tag(tag);
    }
    add(TokenKind::End, "", source_.size());
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t at) const { return at < source_.size() ? source_[at] : '\0'; }
  bool has(std::size_t at, std::string_view text) const {
    return source_.substr(std::min(at, source_.size())).starts_with(text);
  }
  void add(TokenKind kind, std::string_view value, std::size_t at) {
    tokens_.push_back({kind, std::string(value), at});
  }

  // Where the next of {{, {% and {# begins.
  std::size_t next_tag() const {
    for (std::size_t at = source_.find('{', at_); at < source_.size();
         at = source_.find('{', at + 1))
      if (std::string_view("{%#").find(peek(at + 1)) != std::string_view::npos &&
          at + 1 < source_.size())
        return at;
    return source_.size();
  }

  // What lies before a tag, without the white space that the tag takes.
  void add_text(std::size_t tag) {
    std::string_view text = source_.substr(at_, tag - at_);
    if (tag < source_.size()) {
      const char sign = peek(tag + 2);
      if (sign == '-')
        text = without_space_behind(text);
      else if (sign != '+' && peek(tag + 1) != '{')
        text = without_indentation(text);
    }
    if (!text.empty()) add(TokenKind::Text, text, at_);
  }

  std::string_view without_indentation(std::string_view text) const {
    const std::size_t line = text.rfind('\n') + 1;  // 0 where there is none
    if (line == 0 && !is_line_begun_) return text;
    return without_space_before(text.substr(line)).empty() ? text.substr(0, line) : text;
  }

  void read_tag(std::size_t tag) {
    const char kind = source_[tag + 1];
    at_ = tag + 2;
    if (peek(at_) == '-' || peek(at_) == '+') ++at_;
    is_line_begun_ = false;
    if (kind == '#') return skip_comment(tag);
    const bool is_block = kind == '%';
    add(is_block ? TokenKind::BlockBegin : TokenKind::VariableBegin, "", tag);
    if (is_block) refuse_raw(tag);
    read_words(tag, is_block);
  }

  void refuse_raw(std::size_t tag) const {
    const std::string_view rest = without_space_before(source_.substr(at_));
    if (rest.starts_with("raw") && !is_letter(rest.size() > 3 ? rest[3] : ' '))
      throw Mistake{tag, "{% raw %}", "a string in quotes: that tag is not read here"};
  }

  void skip_comment(std::size_t tag) {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) throw Mistake{tag, "a comment without an end", "#}"};
    const bool has_sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    leave_tag(end + 2, has_sign ? source_[end - 1] : ' ', true);
  }

  // Behind a tag that ends at `end`.
  void leave_tag(std::size_t end, char sign, bool takes_line_end) {
    at_ = end;
    if (sign == '-') {
      at_ = source_.size() - without_space_before(source_.substr(end)).size();
      is_line_begun_ = at_ > end && source_[at_ - 1] == '\n';
    } else if (sign != '+' && takes_line_end && peek(end) == '\n') {
      ++at_;
      is_line_begun_ = true;
    }
  }

  bool is_end(bool is_block) {
    const std::string_view closing = is_block ? "%}" : "}}";
    const char sign = peek(at_);
    const bool has_sign = (sign == '-' || (sign == '+' && is_block)) && has(at_ + 1, closing);
    if (!has_sign && !has(at_, closing)) return false;
    add(is_block ? TokenKind::BlockEnd : TokenKind::VariableEnd, "", at_);
    leave_tag(at_ + (has_sign ? 3 : 2), has_sign ? sign : ' ', is_block);
    return true;
  }

  void read_words(std::size_t tag, bool is_block) {
    for (;;) {
      const std::string_view rest = source_.substr(at_);
      at_ = source_.size() - without_space_before(rest).size();
      if (at_ >= source_.size()) throw Mistake{tag, "a tag without an end", is_block ? "%}" : "}}"};
      if (open_.empty() && is_end(is_block)) return;
      read_word();
    }
  }

  void read_word() {
    const char c = source_[at_];
    if (is_digit(c)) return read_number();
    if (is_letter(c)) return read_name();
    if (c == '\'' || c == '"') return read_string(c);
    read_operator();
  }

  std::size_t end_of_digits(std::size_t at) const {
    while (is_digit(peek(at))) ++at;
    return at;
  }

  void read_number() {
    const std::size_t begin = at_;
    std::size_t end = end_of_digits(begin);
    bool is_float = false;
    // "a.0.5": numbers of lists within lists.
    const bool is_behind_dot = begin > 0 && source_[begin - 1] == '.';
    if (!is_behind_dot && peek(end) == '.' && is_digit(peek(end + 1)))
      is_float = true, end = end_of_digits(end + 1);
    const bool has_sign = peek(end + 1) == '+' || peek(end + 1) == '-';
    if (!is_behind_dot && (peek(end) == 'e' || peek(end) == 'E') &&
        is_digit(peek(end + (has_sign ? 2 : 1))))
      is_float = true, end = end_of_digits(end + (has_sign ? 2 : 1));
    const std::string_view text = source_.substr(begin, end - begin);
    const bool is_odd = !is_float && text.size() > 1 && text[0] == '0';
    if (is_letter(peek(end)) || is_odd)
      throw Mistake{begin, "the number " + in_quotes(source_.substr(begin, end + 1 - begin)),
                    "a number in decimal digits"};
    add(is_float ? TokenKind::Float : TokenKind::Integer, text, begin);
    at_ = end;
  }

  void read_name() {
    const std::size_t begin = at_;
    while (is_letter(peek(at_)) || is_digit(peek(at_))) ++at_;
    add(TokenKind::Name, source_.substr(begin, at_ - begin), begin);
  }

  void read_string(char quote) {
    const std::size_t begin = at_;
    std::size_t end = begin + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size())
      throw Mistake{begin, "a string without an end", std::string(1, quote)};
    const std::string_view inside = source_.substr(begin + 1, end - begin - 1);
    add(TokenKind::String, Unescaper(inside, begin + 1).text(), begin);
    at_ = end + 1;
  }

  void read_operator() {
    constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                               "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                               ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const std::string_view text : kOperators) {
      if (!has(at_, text)) continue;
      balance(text);
      add(TokenKind::Operator, text, at_);
      at_ += text.size();
      return;
    }
    const std::size_t length = utf8::step(source_, at_).length;
    throw Mistake{at_, "the character " + in_quotes(source_.substr(at_, length)),
                  "a name, a number, a string in quotes or an operator"};
  }

  // A tag does not end within brackets: `{{ {'a': {}} }}`.
  void balance(std::string_view text) {
    constexpr std::string_view kOpen = "([{", kClosed = ")]}";
    if (kOpen.find(text[0]) != std::string_view::npos) return open_.push_back(text[0]);
    const std::size_t closed = kClosed.find(text[0]);
    if (closed == std::string_view::npos) return;
    if (open_.empty() || open_.back() != kOpen[closed])
      throw Mistake{at_, in_quotes(text), "what closes the brackets that are open"};
    open_.pop_back();
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool is_line_begun_ = true;  // whether what comes next begins a line of the source
  std::string open_;           // brackets
  std::vector<Token> tokens_;
};

}  // namespace

std::string source_of(std::string_view text) {
  std::string source;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\r')
      source += text[at];
    else if (at + 1 >= text.size() || text[at + 1] != '\n')
      source += '\n';
  }
  if (source.ends_with('\n')) source.pop_back();
  return source;
}

std::string place_in(std::string_view source, std::size_t at) {
  const std::string_view before = source.substr(0, std::min(at, source.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;
  return std::to_string(line) + ":" + std::to_string(1 + count_characters(before.substr(begin)));
}

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).tokens(); }

}  // namespace aloft::chat

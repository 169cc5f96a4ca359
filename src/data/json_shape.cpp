#include "data/json_shape.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace aloft {
namespace {

bool is_of_word(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

// Goes from token to token with the open brackets on a stack of its own: no depth is too deep.
class Shape {
 public:
  explicit Shape(std::string_view text) : text_(text) {}

  JsonShape read() {
    while (at_ < text_.size())
      if (!step()) return JsonShape::None;
    return open_.empty() && is_any_closed_ ? JsonShape::Whole : JsonShape::Begun;
  }

 private:
  enum class Awaited { Value, Key, Colon, End };

  bool step() {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return skip();
    if (open_.empty()) return step_between();
    if (c == '"') return take_string();
    if (c == '{' || c == '[') return awaited_ == Awaited::Value && open(c);
    if (c == '}' || c == ']') return close(c);
    if (c == ':') return awaited_ == Awaited::Colon && await(Awaited::Value);
    if (c == ',') return awaited_ == Awaited::End && await(first_in(open_.back()));
    return awaited_ == Awaited::Value && take_word() && (awaited_ = Awaited::End, true);
  }

  // Outside of all brackets.
  bool step_between() {
    const char c = text_[at_];
    if (c == '\x1e' || (c == ',' && is_any_closed_)) return skip();
    return (c == '{' || c == '[') && open(c);
  }

  bool skip() { return ++at_, true; }
  bool await(Awaited next) { return awaited_ = next, skip(); }
  static Awaited first_in(char bracket) { return bracket == '{' ? Awaited::Key : Awaited::Value; }

  bool open(char bracket) {
    open_.push_back(bracket);
    return await(first_in(bracket));
  }

  // Not between a key and its value. A comma may come before.
  bool close(char bracket) {
    const bool is_after_colon = open_.back() == '{' && awaited_ == Awaited::Value;
    if (open_.back() != (bracket == '}' ? '{' : '[') || awaited_ == Awaited::Colon ||
        is_after_colon)
      return false;
    open_.pop_back();
    is_any_closed_ = true;
    return await(Awaited::End);
  }

  bool take_string() {
    if (awaited_ != Awaited::Key && awaited_ != Awaited::Value) return false;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\n' || text_[at_] == '\r') return false;
      if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
    awaited_ = awaited_ == Awaited::Key ? Awaited::Colon : Awaited::End;
    return true;
  }

  // A number, or a word that stands for a value; cut at the end of what is seen, its beginning.
  bool take_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_of_word(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return false;
    for (const std::string_view known : {"true", "false", "null", "NaN", "Infinity", "-Infinity"})
      if (word == known || (at_ == text_.size() && known.starts_with(word))) return true;
    return word.find_first_not_of("0123456789+-.eE") == std::string_view::npos &&
           word.find_first_of("0123456789") <= 1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string open_;  // brackets
  Awaited awaited_ = Awaited::Value;
  bool is_any_closed_ = false;
};

}  // namespace

JsonShape json_shape(std::string_view text) { return Shape(text).read(); }

bool is_json_string(std::string_view text) {
  constexpr std::size_t kQuotes = 2;
  if (text.size() < kQuotes || !text.starts_with('"')) return false;
  std::size_t at = 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at + 1 == text.size();
}

}  // namespace aloft

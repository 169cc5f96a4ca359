// Oniguruma's writing of an expression in PCRE2's.
#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "data/tokenizers/parts/expression.h"
#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

// What stands inside of brackets for a class. Spaces are Unicode's White_Space, to which PCRE2's \s
// adds U+180E; a word's characters are what PCRE2's \w lacks marks and connectors of, and, of all
// numbers that are no digits, Latin-1's alone.
constexpr std::string_view kSpaces =
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";
constexpr std::string_view kNoSpaces =
    "\\x00-\\x08\\x0e-\\x1f\\x21-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"
    "\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}";
constexpr std::string_view kWords =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}\\x{24b6}-\\x{24e9}"
    "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";
constexpr std::string_view kHexDigits = "0-9A-Fa-f";

// General categories, which both libraries name alike.
constexpr std::string_view kCategories[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc",
                                            "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps",
                                            "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So",
                                            "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cn", "Co"};

class Rewriting {
 public:
  Rewriting(std::string_view pattern, const JsonPlace& place) : in_(pattern), place_(place) {}

  std::string whole() {
    while (at_ < in_.size()) one();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    place_.refuse(in_quotes(in_) + " with " + std::string(what),
                  "an expression without it, which is not known to mean the same here");
  }

  bool has(std::string_view text) const { return in_.substr(at_).starts_with(text); }

  void copy(std::size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }

  void one() {
    switch (in_[at_]) {
      case '\\':
        return escape();
      case '[':
        return brackets();
      case '(':
        return group();
      case '{':
        return braces();
      case '*':
      case '+':
      case '?':
        copy(1);
        if (has("?") || has("+")) copy(1);  // reluctant, possessive: alike in both
        if (has("*") || has("+") || has("?")) refuse("a quantifier of a quantifier");
        return;
      default:
        return copy(1);
    }
  }

  void group() {
    if (!has("(?")) {
      if (has("(*")) refuse("(*");
      return copy(1);
    }
    for (std::string_view opening : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"})
      if (has(opening)) return copy(opening.size());
    // Options: of what follows in the group, or of a group of their own.
    const bool is_first = at_ == 0;
    std::string options;
    std::size_t end = at_ + 2;
    for (; end < in_.size() && in_[end] != ':' && in_[end] != ')'; ++end) {
      const char option = in_[end];
      if (option != 'i' && option != 'm' && option != '-')
        refuse("the group " + std::string(in_.substr(at_, end + 1 - at_)));
      options += option == 'm' ? 's' : option;  // Ruby's m: the dot takes line ends
    }
    if (end == in_.size()) refuse("a group without an end");
    // Elsewhere Ruby's alternatives behind it belong to the option.
    if (in_[end] == ')' && !is_first) refuse("options that are not at its beginning");
    out_ += "(?" + options + in_[end];
    at_ = end + 1;
  }

  // {n}, {n,}, {n,m}, {,m}; anything else is a brace.
  void braces() {
    std::size_t end = at_ + 1;
    std::string counts;
    int commas = 0;
    while (end < in_.size() && (std::isdigit(static_cast<unsigned char>(in_[end])) ||
                                (in_[end] == ',' && commas == 0))) {
      commas += in_[end] == ',';
      counts += in_[end++];
    }
    if (end == in_.size() || in_[end] != '}' || counts.empty() || counts == ",") {
      out_ += "\\{";
      ++at_;
      return;
    }
    out_ += counts.front() == ',' ? "{0" + counts + "}" : "{" + counts + "}";
    at_ = end + 1;
    if (has("+") || has("*")) refuse("a quantifier behind {" + counts + "}");
    if (!has("?")) return;
    if (commas == 0) refuse("a quantifier behind {" + counts + "}");
    copy(1);
  }

  // \p{...} and \P{...} as a text that may stand inside and outside of brackets.
  std::string property() {
    bool is_negative = in_[at_ + 1] == 'P';
    const std::size_t end = in_.find('}', at_);
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{' || end == std::string_view::npos)
      refuse("\\p without {...}");
    std::string name(in_.substr(at_ + 3, end - at_ - 3));
    at_ = end + 1;
    if (name.starts_with('^')) {
      is_negative = !is_negative;
      name.erase(0, 1);
    }
    const auto same = [&](std::string_view category) { return lower(category) == lower(name); };
    const auto* found = std::find_if(std::begin(kCategories), std::end(kCategories), same);
    if (found != std::end(kCategories)) {
      name = *found;
    } else {
      // A script: of the character, not of all texts that it occurs in.
      const bool is_script = name.size() > 1 && is_identifier(name) && lower(name) != "any";
      static constexpr std::string_view kOthers[] = {
          "alnum", "alpha", "ascii", "assigned", "blank", "cntrl", "digit", "graph",
          "lower", "print", "punct", "space",    "upper", "word",  "xdigit"};
      if (!is_script ||
          std::find(std::begin(kOthers), std::end(kOthers), lower(name)) != std::end(kOthers))
        refuse("\\p{" + name + "}");
      name = "sc:" + name;
    }
    return std::string(is_negative ? "\\P{" : "\\p{") + name + "}";
  }

  // \xHH, \x{H...}, \uHHHH
  std::string number() {
    const bool is_u = in_[at_ + 1] == 'u';
    std::size_t begin = at_ + 2, end = begin, most = is_u ? 4 : 2;
    const bool in_braces = !is_u && begin < in_.size() && in_[begin] == '{';
    if (in_braces) {
      end = ++begin;
      most = 8;
    }
    while (end < in_.size() && end - begin < most &&
           std::isxdigit(static_cast<unsigned char>(in_[end])))
      ++end;
    const std::string digits(in_.substr(begin, end - begin));
    if (digits.empty() || (is_u && digits.size() != 4)) refuse("an incomplete number");
    if (in_braces && (end == in_.size() || in_[end++] != '}')) refuse("an incomplete number");
    // A byte of a sequence is written so; as a character it would be another.
    if (!in_braces && !is_u && (digits.size() != 2 || digits[0] > '7')) refuse("\\x" + digits);
    at_ = end;
    return "\\x{" + digits + "}";
  }

  // What \n and the like, and escaped marks, are in both places; nothing for a class.
  std::optional<std::string> plain_escape() {
    if (at_ + 1 >= in_.size()) refuse("a backslash at its end");
    const char c = in_[at_ + 1];
    switch (c) {
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        at_ += 2;
        return std::string("\\") + c;
      case 'v':
        at_ += 2;
        return "\\x0b";
      case 'p':
      case 'P':
        return property();
      case 'd':
        at_ += 2;
        return "\\p{Nd}";
      case 'D':
        at_ += 2;
        return "\\P{Nd}";
      case 'x':
      case 'u':
        return number();
      default:
        break;
    }
    if (std::isalnum(static_cast<unsigned char>(c))) return std::nullopt;
    const std::size_t length = utf8::step(in_, at_ + 1).length;
    std::string same(in_.substr(at_, 1 + length));
    at_ += 1 + length;
    return length == 1 ? same : same.substr(1);
  }

  void escape() {
    if (const auto text = plain_escape()) {
      out_ += *text;
      return;
    }
    const char c = in_[at_ + 1];
    const auto put = [&](std::string_view opening, std::string_view inside) {
      out_ += std::string(opening) + std::string(inside) + "]";
      at_ += 2;
    };
    switch (c) {
      case 's':
        return put("[", kSpaces);
      case 'S':
        return put("[^", kSpaces);
      case 'w':
        return put("[", kWords);
      case 'W':
        return put("[^", kWords);
      case 'h':
        return put("[", kHexDigits);
      case 'H':
        return put("[^", kHexDigits);
      case 'A':
      case 'z':
      case 'Z':
        return copy(2);
      case 'b':
      case 'B': {
        const std::string word = "[" + std::string(kWords) + "]";
        const bool at_edge = c == 'b';
        out_ += "(?:(?<=" + word + ")" + (at_edge ? "(?!" : "(?=") + word + ")|(?<!" + word + ")" +
                (at_edge ? "(?=" : "(?!") + word + "))";
        at_ += 2;
        return;
      }
      default:
        refuse("\\" + std::string(1, c));
    }
  }

  void brackets() {
    copy(1);
    if (has("^")) copy(1);
    if (has("]")) refuse("an empty class");
    while (!has("]")) {
      if (at_ >= in_.size()) refuse("a class without an end");
      if (has("[")) refuse(has("[:") ? "a class of POSIX" : "a class in a class");
      if (has("&&")) refuse("&&");
      if (!has("\\")) {
        copy(1);
        continue;
      }
      if (const auto text = plain_escape()) {
        out_ += *text;
        continue;
      }
      switch (in_[at_ + 1]) {
        case 's':
          out_ += kSpaces;
          break;
        case 'S':
          out_ += kNoSpaces;
          break;
        case 'w':
          out_ += kWords;
          break;
        case 'h':
          out_ += kHexDigits;
          break;
        case 'b':
          out_ += "\\x08";
          break;
        default:
          refuse("\\" + std::string(1, in_[at_ + 1]) + " in a class");
      }
      at_ += 2;
    }
    copy(1);
  }

  std::string_view in_;
  const JsonPlace& place_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string in_pcre2(std::string_view pattern, const JsonPlace& place) {
  return Rewriting(pattern, place).whole();
}

}  // namespace aloft::parts

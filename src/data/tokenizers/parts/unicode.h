// What Unicode says of characters and texts, asked of ICU: categories, lower case, normal forms,
// and what a reader sees as one character. Texts are valid UTF-8, shorter than 2 GiB.
//
// Hugging Face's library asks tables of several ages, and so do its ids: normal forms and marks are
// those of Unicode 9, nonspacing marks, controls and punctuation those of Unicode 8, the rest is of
// today. Characters that came later count there as not assigned.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace aloft::unicode {

enum class Form { C, D, KC, KD };

// Appends the text in a normal form of Unicode 9.
void append_normal(std::string& out, std::string_view text, Form form);
// Appends one character in lower case; U+0130 alone becomes two.
void append_lower(std::string& out, char32_t code);

bool is_ascii(std::string_view text);

bool is_space(char32_t code);    // Unicode's White_Space
bool is_numeric(char32_t code);  // categories Nd, Nl, No
// Any P category of Unicode 8, or a mark of ASCII that is none ("$+<=>^`|~").
bool is_punctuation(char32_t code);
bool is_mark(char32_t code);               // Mn, Mc, Me of Unicode 9
bool is_nonspacing_mark(char32_t code);    // Mn of Unicode 8
bool is_control_or_format(char32_t code);  // Cc, Cf, Co of Unicode 8
// Alphabetic, marks, decimal digits, connectors and joiners: what \w means in expressions.
bool is_word(char32_t code);

// A walk over what a reader sees as characters (extended grapheme clusters).
class Graphemes {
 public:
  explicit Graphemes(std::string_view text);  // which outlives the walk
  ~Graphemes();
  Graphemes(const Graphemes&) = delete;
  Graphemes& operator=(const Graphemes&) = delete;

  std::size_t next();  // the end of the next one; only while the text goes on

 private:
  struct Iterator;
  std::string_view text_;
  std::size_t at_ = 0;
  std::unique_ptr<Iterator> iterator_;  // made where a text needs one
};

// The text with U+FFFD for each part that is not UTF-8: as long a piece of a sequence as may be
// right counts as one, as in Python's "replace" and in browsers. True where there was any;
// `out` is left alone otherwise.
bool repair(std::string_view text, std::string& out);

}  // namespace aloft::unicode

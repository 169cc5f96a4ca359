// Regular expressions as published tokenizers write them (Oniguruma's, in the syntax of Ruby), run
// by PCRE2's compiler. What both write alike but mean otherwise (\s, \w, \h, (?m), {,n}, scripts)
// is rewritten; what is not known to mean the same is refused, never guessed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "data/tokenizers/parts/json_place.h"

namespace aloft::parts {

// What a search writes down; one a thread.
class MatchSpace {
 public:
  MatchSpace();
  ~MatchSpace();
  MatchSpace(const MatchSpace&) = delete;
  MatchSpace& operator=(const MatchSpace&) = delete;

 private:
  friend class Expression;
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

class Expression {
 public:
  // E0519 at `place` where it is no expression or holds something that is not known.
  Expression(std::string_view pattern, const JsonPlace& place);
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  struct Match {
    std::size_t begin = 0, end = 0;
  };
  // The leftmost match that begins at `from` or later, in a text that is UTF-8. DataError E0519
  // where the expression takes more steps than any useful one.
  bool find(std::string_view text, std::size_t from, MatchSpace& space, Match& match) const;

  // Calls visit(begin, end, is_match) for all of a text that is not empty, matches and what lies
  // between them. A match of nothing right behind another match does not count.
  template <class Visit>
  void walk(std::string_view text, MatchSpace& space, Visit visit) const {
    std::size_t from = 0, told = 0;
    bool has_matched = false;
    Match m;
    while (from <= text.size() && find(text, from, space, m)) {
      if (m.begin == m.end && has_matched && m.end == told) {
        from = next_character(text, from);
        continue;
      }
      if (told != m.begin) visit(told, m.begin, false);
      visit(m.begin, m.end, true);
      from = told = m.end;
      has_matched = true;
    }
    if (told != text.size()) visit(told, text.size(), false);
  }

  const std::string& pattern() const { return pattern_; }  // as it was given

 private:
  static std::size_t next_character(std::string_view text, std::size_t from);

  struct Code;
  std::string pattern_;
  std::unique_ptr<Code> code_;
};

// The same in PCRE2's writing, for options UTF, UCP and MULTILINE.
std::string in_pcre2(std::string_view pattern, const JsonPlace& place);

}  // namespace aloft::parts

// What a published tokenizer does to a text before it looks for words: the part `normalizer` of
// tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizers/parts/expression.h"
#include "data/tokenizers/parts/json_place.h"

namespace aloft::parts {

// A text on its way. `lost_front`: something that stood at its beginning is gone, which
// pre-tokenizers that treat the first word otherwise go by.
struct NormalText {
  std::string text;
  std::string spare;  // where the next form is written, then swapped
  bool lost_front = false;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalText& t, MatchSpace& space) const = 0;
  // Whether the form of a text's parts, cut before a space behind an ASCII letter or digit, is that
  // of the text.
  virtual bool is_local() const { return false; }
};

// One after the other; a part that is a Sequence is as many as it holds. E0519: a type, a key or a
// value that is not known.
std::vector<std::unique_ptr<Normalizer>> read_normalizers(const JsonPlace& place);

// All of them, in order. E0519 where the text grows beyond kMostGrowth times what it was, or is
// longer than kMostNormalized.
void normalize(const std::vector<std::unique_ptr<Normalizer>>& all, NormalText& t,
               MatchSpace& space);

// A `pattern` {"String": ...} or {"Regex": ...}: what Replace and Split look for.
struct Pattern {
  std::string text;                        // of String
  std::unique_ptr<Expression> expression;  // of Regex

  explicit Pattern(const JsonPlace& place);
  // Expression::walk for both.
  template <class Visit>
  void walk(std::string_view in, MatchSpace& space, Visit visit) const {
    if (expression) return expression->walk(in, space, visit);
    std::size_t told = 0;
    for (std::size_t at; (at = in.find(text, told)) != std::string_view::npos;) {
      if (at != told) visit(told, at, false);
      told = at + text.size();
      visit(at, told, true);
    }
    if (told != in.size()) visit(told, in.size(), false);
  }
};

// What Replace has, as a normalizer and as a decoder.
struct Replacement {
  Pattern pattern;
  std::string content;
};
Replacement read_replacement(const JsonPlace& place);

}  // namespace aloft::parts

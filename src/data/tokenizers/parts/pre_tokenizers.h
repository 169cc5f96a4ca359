// How a published tokenizer cuts a text into words: the part `pre_tokenizer` of tokenizer.json.
#pragma once

#include <memory>
#include <vector>

#include "data/tokenizers/parts/expression.h"
#include "data/tokenizers/parts/json_place.h"
#include "data/tokenizers/parts/pieces.h"

namespace aloft::parts {

// A step: it cuts pieces, or writes them anew. Pieces are UTF-8 and not empty.
class CutStep {
 public:
  virtual ~CutStep() = default;
  virtual void apply(Pieces& pieces, MatchSpace& space) const = 0;
  // Whether the pieces of a text are those of its two parts, cut before a space behind an ASCII
  // letter or digit.
  virtual bool is_local() const { return false; }
  // Whether it does nothing else than to write each piece in the letters of bytes.
  virtual bool writes_byte_letters() const { return false; }
};

struct PreTokenizer {
  std::vector<std::unique_ptr<CutStep>> steps;
  // Words are written in the letters of bytes at last (byte_letters.h), by whoever needs it: words
  // that are known already do without.
  bool ends_in_byte_letters = false;

  bool is_local() const;
};

// A Sequence is as many steps as it holds. E0519: a type, a key or a value that is not known.
PreTokenizer read_pre_tokenizer(const JsonPlace& place);

// Words by an expression: all that matches and all between, each a word. Its words end before a
// space behind an ASCII letter or digit, whatever follows.
std::unique_ptr<CutStep> words_by(Expression expression);
// GPT-2's words (gpt2_words.h).
std::unique_ptr<CutStep> words_of_gpt2();

}  // namespace aloft::parts

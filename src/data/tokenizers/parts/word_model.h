// What makes ids of words: the part `model` of tokenizer.json.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/parts/json_place.h"
#include "data/tokenizers/parts/vocabulary.h"

namespace aloft::parts {

// Memory that models work in; one a thread.
struct ModelSpace {
  struct Symbol {
    std::int32_t id, previous, next;  // neighbours by place; id -2: merged away
  };
  struct Candidate {
    std::int32_t rank, left, left_id, right_id, result;
  };
  struct Step {  // the best way to a place
    double score;
    std::size_t from;
    std::int32_t id;
  };
  std::vector<Symbol> symbols;
  std::vector<Candidate> candidates;
  std::vector<Step> steps;
  std::string text;
};

class WordModel {
 public:
  explicit WordModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~WordModel() = default;

  // Appends the ids of a word that is not empty. DataError E0501 where the vocabulary has nothing
  // for it.
  virtual void encode(std::string_view word, ModelSpace& space,
                      std::vector<std::int32_t>& ids) const = 0;

  // The end of the first part of `word` from `begin` on whose ids do not depend on the rest; the
  // word's end where no place is known to be one.
  virtual std::size_t part_end(std::string_view word, std::size_t begin) const {
    static_cast<void>(begin);
    return word.size();
  }

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  [[noreturn]] void refuse_word(std::string_view word) const;

 private:
  Vocabulary vocabulary_;
};

// By its `type`, or by its keys as early files without one are told apart. E0519: a type, a key or
// a value that is not known, parts that do not fit together.
std::unique_ptr<WordModel> read_word_model(const JsonPlace& place);

// Readers of the types, each in a file of its own.
std::unique_ptr<WordModel> read_bpe(const JsonPlace& place);
std::unique_ptr<WordModel> read_unigram(const JsonPlace& place);
std::unique_ptr<WordModel> read_word_level(const JsonPlace& place);
std::unique_ptr<WordModel> read_word_piece(const JsonPlace& place);

// The token that stands for one byte: "<0x0A>".
std::string token_of_byte(unsigned char byte);

}  // namespace aloft::parts

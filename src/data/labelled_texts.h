// Texts with a label each, as ids in memory, and batches of them: every text in a row of one
// length, with padding behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/file.h"
#include "data/array_loader.h"
#include "data/example_source.h"
#include "data/tokenizer.h"

namespace aloft {

struct LabelledTexts {
  // Of all texts, one behind the other; text i has those from starts[i] up to starts[i + 1].
  std::vector<std::int32_t> tokens, types;
  std::vector<std::uint64_t> starts = {0};
  std::vector<std::int32_t> labels;
  std::int64_t cut = 0;  // texts that were longer

  std::uint64_t examples() const { return labels.size(); }
};

// A file of a JSON object a line: "text", perhaps "text_pair", a text that belongs to it, and
// "label", a whole number >= 0. Other keys are left out, empty lines too. Texts are what the
// tokenizer makes of them, with what it puts around one or two; those of more than `length` tokens
// are cut: of two the longer one, token by token. DataError E0515 names the line; E0501.
LabelledTexts read_labelled_texts(const Path& path, const Tokenizer& tokenizer,
                                  std::int64_t length);

// The texts of some rows, in the order of `rows`.
LabelledTexts texts_of_rows(const LabelledTexts& all, const std::vector<std::uint64_t>& rows);

// Columns: tokens and types, i32 [batch, length], 0 behind a text, where nobody looks; lengths and
// labels, i32 [batch]. Rows that are padding have no token and the label kIgnoredLabel.
class LabelledExamples : public ExampleSource {
 public:
  // `options`: its prefetch does nothing, as there is nothing to wait for. UserError E0530.
  LabelledExamples(std::shared_ptr<const LabelledTexts> texts, std::int64_t length,
                   const ArrayLoaderOptions& options);
  const ExampleBatch* next() override;
  std::uint64_t position() const override { return position_; }
  std::uint64_t samples_per_epoch() const override { return texts_->examples(); }

 private:
  std::shared_ptr<const LabelledTexts> texts_;
  std::size_t length_;
  ArrayLoaderOptions options_;
  BatchWalk walk_;
  std::uint64_t position_;
  std::vector<std::int32_t> tokens_, types_, lengths_, labels_;
  ExampleBatch batch_;
};

}  // namespace aloft

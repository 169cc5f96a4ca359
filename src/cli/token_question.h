// The tokens that a saved language model is asked about, from a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/text_classifier.h"

namespace aloft::cli {

struct Question {
  std::int64_t batch = 0, length = 0;
  std::vector<std::int32_t> tokens, targets;  // [batch, length]; targets of -100 do not count
  bool has_loss = true;                       // any target counts
};

// Of a safetensors file: `tokens` [B, T], i32 or i64, and `targets` of the same shape; without them
// each position is to predict the next, the last one nothing. What transformers takes is taken as
// there: `input_ids`, and `labels`, of which each position is to predict the next. DataError E0719,
// also of a tensor of the batch that nothing reads; those of the file.
// `needs_loss`: E0719, too, of rows of one token without targets, of which nothing is to be learnt.
// `at`: of a file of batches (`aloft data batches`), tensors [batches, B, T], that one; where it is
// not given such a file is refused.
Question read_question(const std::string& path, const models::CausalLm& model, bool needs_loss,
                       std::optional<std::int64_t> at = std::nullopt);

// What a classifier of texts is asked.
struct TextQuestion {
  std::int64_t batch = 0, length = 0;
  std::vector<std::int32_t> tokens, types;    // [batch, length]
  std::vector<std::int32_t> lengths, labels;  // [batch]; labels of -100 do not count
};

// Likewise: `tokens` [B, T], perhaps `types` of the same shape (else all are of the first), and
// `lengths` [B] (else all are T); `labels` [B], without which there is no loss. DataError E0719,
// where labels are needed and missing too.
TextQuestion read_text_question(const std::string& path, const models::TextClassifier& model,
                                bool needs_labels);

}  // namespace aloft::cli

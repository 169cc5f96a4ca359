// A classifier of texts, as tasks know it.
#pragma once

#include "models/model.h"

namespace aloft::models {

// Reads tokens in both directions. T is at most context(); UserError E0213 for any other shape.
class TextClassifier : public Classifier {
 public:
  virtual std::int64_t vocab() const = 0;        // ids that it knows
  virtual std::int64_t context() const = 0;      // the longest text, in tokens
  virtual std::int64_t token_types() const = 0;  // kinds of tokens: the first text's, the second's

  // tokens and types, integers [B, T], of which the first lengths [B] of a row are a text and the
  // rest padding, which nothing looks at -> logits [B, classes()].
  virtual Tensor classify(Operand tokens, Operand types, Operand lengths) const = 0;
  // Texts of T tokens, all of the first type.
  Tensor operator()(Operand tokens) const override;
  const TextClassifier* of_texts() const override { return this; }
};

}  // namespace aloft::models

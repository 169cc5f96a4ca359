// The BERT family (Devlin et al. 2018), for classification: positions counted from 0, two kinds of
// tokens, a pooled first token. Parameters have Hugging Face's names without "bert."
// (encoder.h): embeddings.word_embeddings.weight, ..., pooler.dense.weight, classifier.bias.
#pragma once

#include "models/encoder_settings.h"

namespace aloft::models {

// The sizes of a BERT; the defaults are those of BERT base, uncased.
struct BertConfig : EncoderConfig {
  std::int64_t context = 512;  // the longest text
  friend bool operator==(const BertConfig&, const BertConfig&) = default;

  template <class C = BertConfig>
  static auto fields() {
    using I = std::int64_t;
    return joined(FieldList{setting("context", &C::context, {1, 1 << 20}, "longest text, in tokens",
                                    {.published = "max_position_embeddings", .assumed = I{512}})},
                  encoder_fields<C>(30522));
  }
};

// A BERT.
class Bert : public Encoder {
 public:
  // UserError E0210, E0211: sizes that are out of range, or do not fit together.
  explicit Bert(const BertConfig& config);
};

}  // namespace aloft::models

// The transformer encoder that classifies texts: BERT's and RoBERTa's, whose differences are
// switches of one description. Rows of three tables (tokens, positions, types) are added and
// normed; a block is y = norm(x + attention(x)), then norm(y + mlp(y)), with dropout on what is
// added; the first token's row goes through a head. Every token sees every other of its text, and
// none sees padding.
//
// Attention is written out of products and a softmax, as it has dropout on its weights; so a step
// keeps them, [B, heads, T, T] a block.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text_classifier.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace aloft::models {

struct EncoderDescription {
  // What stands between the first token's row and the logits.
  enum class Head {
    Pooled,  // pooler.dense, tanh; dropout, classifier: BERT's
    Dense,   // dropout, classifier.dense, tanh, dropout, classifier.out_proj: RoBERTa's
  };
  std::string_view family;  // for messages: "BERT"
  Head head = Head::Pooled;
  std::int64_t layers = 1, heads = 1, dim = 1, hidden = 1, vocab = 1, token_types = 1, classes = 2;
  std::int64_t context = 1;  // the longest text
  // The token that is padding: positions are counted from the row behind its number on, over tokens
  // that are not it. None: they are counted from 0 on, over all.
  std::optional<std::int64_t> padding = std::nullopt;
  std::string activation = "gelu";  // of decoder_activations()
  double norm_eps = 1e-12;
  double dropout = 0;            // behind the tables, and of what a part of a block adds
  double attention_dropout = 0;  // of attention's weights
  double head_dropout = 0;
  nn::Init init;  // of tables and projections; biases are 0
};

// A block: children as BERT's files name them, attention.self.query, ..., output.LayerNorm.
class EncoderBlock : public nn::Layer {
 public:
  EncoderBlock(nn::Module& parent, std::string_view name, const EncoderDescription& d);
  std::string_view kind() const override { return "Block"; }
  // x [B, T, dim]; seen, bool [B, 1, 1, T]: which tokens are of the text -> as x.
  Tensor forward(Operand x, const Tensor& seen) const;

 private:
  Tensor attention(const Tensor& x, const Tensor& seen) const;

  std::int64_t heads_, width_;
  Tensor (*activation_)(Operand);
  // In the order of execution:
  nn::Linear query_, key_, value_;
  nn::Dropout drop_weights_;
  nn::Linear attended_;
  nn::Dropout drop_attended_;
  nn::LayerNorm attention_norm_;
  nn::Linear in_, out_;
  nn::Dropout drop_out_;
  nn::LayerNorm norm_;
};

class Encoder : public TextClassifier {
 public:
  // UserError E0210, E0211: sizes that are out of range, or do not fit together.
  explicit Encoder(const EncoderDescription& d);

  std::int64_t classes() const override { return d_.classes; }
  std::int64_t vocab() const override { return d_.vocab; }
  std::int64_t context() const override { return d_.context; }
  std::int64_t token_types() const override { return d_.token_types; }
  Tensor classify(Operand tokens, Operand types, Operand lengths) const override;

 private:
  Tensor positions_of(const Tensor& tokens) const;
  Tensor head(const Tensor& first) const;

  EncoderDescription d_;
  // In the order of execution, which the order of parameters follows:
  nn::Embedding tokens_, positions_, types_;
  nn::LayerNorm norm_;
  nn::Dropout drop_;
  std::vector<std::unique_ptr<EncoderBlock>> blocks_;
  std::optional<nn::Linear> pooler_, dense_, classifier_;
  nn::Dropout drop_head_;
};

}  // namespace aloft::models

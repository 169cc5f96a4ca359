// The transformer decoder that language models of today share: a table of tokens, blocks, a norm, a
// head. A block is y = x + attention(norm(x)), then y + mlp(norm(y)), with dropout on what is
// added; norms may stand behind the parts too, or there alone, and both parts may read x. Which
// norm, attention and feed-forward part that is, and how all are named, a family says (gpt2.h,
// llama.h, qwen2.h): it brings a DecoderForm, that of its description (decoder_description.h) or
// its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/linear.h"

namespace aloft::models {

// A norm or a feed-forward part: [B, T, dim] -> the same shape.
class DecoderPart {
 public:
  virtual ~DecoderPart() = default;
  virtual Tensor operator()(Operand x) const = 0;
};

// The attention of a block: x [B, T, dim] at the positions `places`, i32[T] or i32[B, T] -> the
// same shape, each position seeing those up to itself.
class DecoderAttention {
 public:
  virtual ~DecoderAttention() = default;
  // The whole sequence at once. `lengths`, here and below: i32[B], of the sequences, where angles
  // depend on it; perhaps not defined.
  virtual Tensor whole(Operand x, const Tensor& places, const Tensor& lengths) const = 0;
  // Decoding: x stands behind the first `position`, i32[], positions of the cache, and is appended.
  virtual Tensor cached(Operand x, const Tensor& places, const nn::KeyValueCache& cache,
                        const Tensor& position, const Tensor& lengths) const = 0;
  // Sequences that are longer turn by other angles; 0: all turn alike.
  virtual std::int64_t first_length() const { return 0; }
  // What is kept of a position: keys of so many heads of so many features, and as many values.
  virtual std::int64_t kv_heads() const = 0;
  virtual std::int64_t width() const = 0;
};

// How a decoder is built: the names of its parts, as files of its family have them, and how its
// parts are made. A part is made as a child, of the name given, of the module given.
struct DecoderForm {
  template <class Part>
  using Make = std::function<std::unique_ptr<Part>(nn::Module& parent, std::string_view name)>;
  // Of the block `layer`, counted from 0: blocks need not be alike.
  template <class Part>
  using MakeInBlock = std::function<std::unique_ptr<Part>(nn::Module& parent, std::string_view name,
                                                          std::int64_t layer)>;

  std::string_view family;             // for messages: "GPT-2"
  std::string_view tokens, positions;  // tables; no name: positions are not learnt
  std::string_view blocks;             // block i is "blocks.i"
  // Of a block, in the order in which they are made. No name: there is no such norm. Those `after`
  // take what a part gives, before it is added.
  std::string_view attention_norm, attention, attention_norm_after;
  std::string_view mlp_norm, mlp, mlp_norm_after;
  std::string_view norm, head = "lm_head";  // behind the blocks
  Make<DecoderPart> make_norm;
  MakeInBlock<DecoderPart> make_mlp;
  MakeInBlock<DecoderAttention> make_attention;
  nn::Init init;               // of the tables and the head
  bool is_parallel = false;    // both parts of a block read what it is given
  double table_scale = 1;      // factor of the tokens' rows, within the module of the table
  double embedding_scale = 1;  // the same, behind it
  double residual_scale = 1;   // factor of what a part adds
  double logit_scale = 1;      // factor of the logits
  double logit_cap = 0;        // logits l become cap tanh(l / cap); 0: they stay
};

// The sizes of a decoder that are not its parts'.
struct DecoderSizes {
  std::int64_t layers = 1, dim = 1, vocab = 1, context = 1;
  double dropout = 0;  // after the table and after both parts of a block
  bool tied = true;    // the head is the table of tokens; false: it has weights of its own
};

// A block, whose parts are made as the form says.
class DecoderBlock : public nn::Layer {
 public:
  // As Decoder makes it.
  DecoderBlock(nn::Module& parent, std::string_view name, const DecoderForm& form,
               std::int64_t layer, double dropout);
  std::string_view kind() const override { return "Block"; }
  // x [B, T, dim] at `places` -> the same shape. `cache` null: the whole sequence at once; else
  // decoding, with x at the cache's `position`.
  Tensor forward(Operand x, const Tensor& places, const nn::KeyValueCache* cache,
                 const Tensor& position, const Tensor& lengths) const;
  const DecoderAttention& attention() const { return *attention_; }

 private:
  // In the order of execution; norms that are not there are null:
  std::unique_ptr<DecoderPart> attention_norm_;
  std::unique_ptr<DecoderAttention> attention_;
  std::unique_ptr<DecoderPart> attention_norm_after_, mlp_norm_, mlp_, mlp_norm_after_;
  nn::Dropout drop_attention_, drop_mlp_;
  bool is_parallel_;
  double residual_scale_;
};

// The language model of a form; families derive from it.
class Decoder : public CausalLm {
 public:
  // UserError E0210, E0211: sizes that are out of range, or do not fit together.
  Decoder(const DecoderSizes& sizes, const DecoderForm& form);

  std::int64_t vocab() const override { return sizes_.vocab; }
  std::int64_t context() const override { return sizes_.context; }
  Tensor operator()(Operand tokens) const override;
  Tensor loss(Operand tokens, Operand targets) const override;
  DecodeCache make_cache(std::int64_t batch, std::int64_t longest, DType dtype) const override;
  Tensor decode(Operand tokens, const DecodeCache& cache) const override;
  void prefill(Operand tokens, const DecodeCache& cache) const override;
  std::vector<std::string> inner_layers() const override;

 private:
  Tensor hidden(const Tensor& tokens, const DecodeCache* cache, const Tensor& lengths) const;
  Tensor lengths_of(const Tensor& tokens, const Tensor& targets) const;
  std::int64_t first_length() const;
  Tensor head(const Tensor& x) const;

  DecoderSizes sizes_;
  std::string family_;
  double embedding_scale_, logit_scale_, logit_cap_;
  // In the order of execution, which the order of parameters follows:
  nn::Embedding tokens_;
  std::optional<nn::Embedding> positions_;
  nn::Dropout drop_;
  std::vector<std::unique_ptr<DecoderBlock>> blocks_;
  std::unique_ptr<DecoderPart> norm_;
  std::optional<nn::Linear> head_;  // only where it is not tied to the table
};

}  // namespace aloft::models

// The GPT-2 family (Radford et al. 2019): learned positions, pre-norm blocks, tanh GELU, a head
// tied to the token table. Parameters have Hugging Face's names without "transformer.":
// wte.weight, wpe.weight, h.0.ln_1.weight, h.0.attn.c_attn.weight, ..., ln_f.bias; projections are
// [out, in] (huggingface.h transposes on the way in and out).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/attention.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/extents.h"

namespace aloft::models {

// The sizes of a GPT-2; the defaults are the smallest one of the paper (124 million parameters),
// its vocabulary padded to a multiple of 64.
struct Gpt2Config {
  // Blocks, heads of each, features of a position, tokens there are, longest sequence.
  std::int64_t layers = 12, heads = 12, dim = 768, vocab = 50304, context = 1024;
  std::int64_t hidden = 0;  // width of the feed-forward part; 0: 4 dim
  double dropout = 0;       // after the embedding and after both parts of a block
  bool bias = true;         // false: neither projections nor norms have one
  bool tied = true;         // the head is the token table; false: lm_head.weight
  double norm_eps = 1e-5;   // added to the norms' variances
  double init_deviation =
      0.02;  // of the weights' first values; residual projections: less, nn::Init

  // `hidden`, or 4 dim. UserError E0103 beyond 63 bits.
  std::int64_t feed_forward() const { return hidden > 0 ? hidden : extent_product(4, dim); }
  // Numbers in all parameters of Gpt2(*this). UserError E0103 beyond 63 bits.
  std::int64_t parameter_count() const;
  friend bool operator==(const Gpt2Config&, const Gpt2Config&) = default;
};

// A size by name: "gpt2-124m" (also "gpt2"), "gpt2-355m" ("gpt2-medium"), "gpt2-774m"
// ("gpt2-large"), "gpt2-1558m" ("gpt2-xl"). The vocabulary is padded from 50,257 to 50,304, a
// multiple of 64. UserError E0712 with the nearest name.
Gpt2Config gpt2_config(std::string_view name);
// The names that gpt2_config() knows.
const std::vector<std::string>& gpt2_names();

// What decoding keeps between calls: keys and values of every layer, and how many positions are
// filled. Variables like any other, so one compiled program serves every position.
struct Gpt2Cache {
  std::vector<nn::KeyValueCache> layers;  // of each block
  VariablePtr position;                   // i32[]: positions filled
  std::int64_t longest = 0;               // positions that there is room for

  void clear();  // back to an empty sequence
};

// The feed-forward part of a block: c_proj(gelu_tanh(c_fc(x))).
class Gpt2Mlp : public nn::Layer {
 public:
  // As Gpt2 makes it, of the config's sizes; UserErrors as Gpt2's.
  Gpt2Mlp(nn::Module& parent, std::string_view name, const Gpt2Config& config);
  Tensor operator()(Operand x) const;  // [B, T, dim] -> [B, T, dim]

  nn::Linear c_fc, c_proj;  // dim -> hidden -> dim
};

// y = x + attention(ln_1(x)), then y + mlp(ln_2(y)), with dropout on what is added.
class Gpt2Block : public nn::Layer {
 public:
  // As Gpt2 makes it, of the config's sizes; UserErrors as Gpt2's.
  Gpt2Block(nn::Module& parent, std::string_view name, const Gpt2Config& config);
  // x [B, T, dim] -> the same shape. `cache` null: the whole sequence at once; else decoding, with
  // x at the cache's `position` (nn/attention.h).
  Tensor forward(Operand x, const nn::KeyValueCache* cache, const Tensor& position) const;

  // In the order of execution, named as Hugging Face names them:
  nn::LayerNorm ln_1;
  nn::MultiHeadAttention attn;
  nn::LayerNorm ln_2;
  Gpt2Mlp mlp;
  nn::Dropout drop_attn, drop_mlp;
};

// The language model: token and position embeddings, blocks, a norm, a head.
class Gpt2 : public nn::Layer {
 public:
  // UserError E0210, E0211: sizes that are out of range, or do not fit together.
  explicit Gpt2(const Gpt2Config& config);

  // tokens, integers [B, T] with T <= context -> logits [B, T, vocab]. UserError E0213 for any
  // other shape.
  Tensor operator()(Operand tokens) const;
  // Mean cross-entropy against targets [B, T]; -100 is ignored. The head feeds the loss directly,
  // so that a pass can fuse the two.
  Tensor loss(Operand tokens, Operand targets) const;

  // A cache for `batch` sequences of up to `longest` positions (at most the context), kept in
  // `dtype`: the type that attention computes in.
  Gpt2Cache make_cache(std::int64_t batch, std::int64_t longest, DType dtype) const;
  // The next n tokens [B, n] of the sequences in the cache: appends them. `decode` returns the
  // logits [B, n, vocab]; `prefill` only fills the cache. UserError E0213 unless n is 1 to
  // `longest`.
  Tensor decode(Operand tokens, const Gpt2Cache& cache) const;
  void prefill(Operand tokens, const Gpt2Cache& cache) const;

  // The sizes that it was made with.
  const Gpt2Config& config() const { return config_; }

 private:
  Tensor hidden(const Tensor& tokens, const Gpt2Cache* cache) const;
  Tensor head(const Tensor& x) const;

  Gpt2Config config_;

 public:
  // In the order of execution, named as Hugging Face names them:
  nn::Embedding wte, wpe;  // of tokens, of positions
  nn::Dropout drop;
  std::vector<std::unique_ptr<Gpt2Block>> blocks;  // h.0, h.1, ...
  nn::LayerNorm ln_f;
  std::optional<nn::Linear> lm_head;  // only where the head is not tied to wte
};

}  // namespace aloft::models

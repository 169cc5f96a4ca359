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

namespace aloft::models {

struct Gpt2Config {
  std::int64_t layers = 12, heads = 12, dim = 768, vocab = 50304, context = 1024;
  std::int64_t hidden = 0;  // width of the feed-forward part; 0: 4 dim
  double dropout = 0;       // after the embedding and after both parts of a block
  bool bias = true;         // false: neither projections nor norms have one
  bool tied = true;         // the head is the token table; false: lm_head.weight
  double norm_eps = 1e-5;
  double init_deviation = 0.02;

  std::int64_t feed_forward() const { return hidden > 0 ? hidden : 4 * dim; }
  std::int64_t parameter_count() const;
  friend bool operator==(const Gpt2Config&, const Gpt2Config&) = default;
};

// A size by name: "gpt2-124m" (also "gpt2"), "gpt2-355m" ("gpt2-medium"), "gpt2-774m"
// ("gpt2-large"), "gpt2-1558m" ("gpt2-xl"). The vocabulary is padded from 50,257 to 50,304, a
// multiple of 64. UserError E0712 with the nearest name.
Gpt2Config gpt2_config(std::string_view name);
const std::vector<std::string>& gpt2_names();

// What decoding keeps between calls: keys and values of every layer, and how many positions are
// filled. Variables like any other, so one compiled program serves every position.
struct Gpt2Cache {
  std::vector<nn::KeyValueCache> layers;
  VariablePtr position;  // i32[]
  std::int64_t longest = 0;

  void clear();  // back to an empty sequence
};

class Gpt2Mlp : public nn::Layer {
 public:
  Gpt2Mlp(nn::Module& parent, std::string_view name, const Gpt2Config& config);
  Tensor operator()(Operand x) const;

  nn::Linear c_fc, c_proj;
};

class Gpt2Block : public nn::Layer {
 public:
  Gpt2Block(nn::Module& parent, std::string_view name, const Gpt2Config& config);
  // `cache` null: the whole sequence at once.
  Tensor forward(Operand x, const nn::KeyValueCache* cache, const Tensor& position) const;

  nn::LayerNorm ln_1;
  nn::MultiHeadAttention attn;
  nn::LayerNorm ln_2;
  Gpt2Mlp mlp;
  nn::Dropout drop_attn, drop_mlp;
};

class Gpt2 : public nn::Layer {
 public:
  // UserError E0210, E0211: extents that do not fit together.
  explicit Gpt2(const Gpt2Config& config);

  // tokens, integers [B, T] with T <= context -> logits [B, T, vocab].
  Tensor operator()(Operand tokens) const;
  // Mean cross-entropy against targets [B, T]; -100 is ignored. The head feeds the loss directly,
  // so that a pass can fuse the two.
  Tensor loss(Operand tokens, Operand targets) const;

  // A cache for `batch` sequences of up to `longest` positions (at most the context), kept in
  // `dtype`: the type that attention computes in.
  Gpt2Cache make_cache(std::int64_t batch, std::int64_t longest, DType dtype) const;
  // The next n tokens [B, n] of the sequences in the cache: appends them. `decode` returns the
  // logits [B, n, vocab]; `prefill` only fills the cache.
  Tensor decode(Operand tokens, const Gpt2Cache& cache) const;
  void prefill(Operand tokens, const Gpt2Cache& cache) const;

  const Gpt2Config& config() const { return config_; }

 private:
  Tensor hidden(const Tensor& tokens, const Gpt2Cache* cache) const;
  Tensor head(const Tensor& x) const;

  Gpt2Config config_;

 public:
  nn::Embedding wte, wpe;
  nn::Dropout drop;
  std::vector<std::unique_ptr<Gpt2Block>> blocks;  // h.0, h.1, ...
  nn::LayerNorm ln_f;
  std::optional<nn::Linear> lm_head;
};

}  // namespace aloft::models

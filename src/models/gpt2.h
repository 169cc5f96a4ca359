// The GPT-2 family (Radford et al. 2019): learned positions, pre-norm blocks, tanh GELU, a head
// tied to the token table. Parameters have Hugging Face's names without "transformer.":
// wte.weight, wpe.weight, h.0.ln_1.weight, h.0.attn.c_attn.weight, ..., ln_f.bias; projections are
// [out, in] (huggingface.h transposes on the way in and out).
#pragma once

#include <string_view>

#include "models/decoder.h"
#include "models/decoder_settings.h"
#include "models/family.h"
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
  // Of the weights' first values; residual projections: less, nn::Init.
  double init_deviation = 0.02;

  // `hidden`, or 4 dim. UserError E0103 beyond 63 bits.
  std::int64_t feed_forward() const { return hidden > 0 ? hidden : extent_product(4, dim); }
  friend bool operator==(const Gpt2Config&, const Gpt2Config&) = default;

  // Its settings: keys of a recipe, and of config.json.
  template <class C = Gpt2Config>
  static auto fields() {
    using I = std::int64_t;
    return FieldList{
        setting("layers", &C::layers, {1, 1000}, "transformer blocks",
                {.published = "n_layer", .assumed = I{12}}),
        setting("heads", &C::heads, {1, 1024}, "attention heads; divides dim",
                {.resumed = kOtherHeads, .published = "n_head", .assumed = I{12}}),
        setting("dim", &C::dim, {1, 65536}, "width", {.published = "n_embd", .assumed = I{768}}),
        setting("hidden", &C::hidden, {0, 1 << 20}, "width of the feed-forward part; 0: by dim",
                {.published = "n_inner",
                 .assumed = I{0},
                 .derived = [](const SettingValues& v) { return config_of<C>(v).feed_forward(); }}),
        setting("context", &C::context, {1, 1 << 20}, "longest sequence, in tokens",
                {.published = "n_positions", .published_before = "n_ctx", .assumed = I{1024}}),
        setting("vocab", &C::vocab, {1, 1 << 24}, "rows of the token table; 0: the tokenizer's",
                {.is_of_data = true,
                 .may_exceed = true,
                 .published = "vocab_size",
                 .assumed = I{50257}}),
        setting("dropout", &C::dropout, {0, 0.99}, "probability",
                {.may_change = true,
                 .resumed = kOtherDropout,
                 .written = {"resid_pdrop", "embd_pdrop"}}),
        setting("init_std", &C::init_deviation, {0, 10}, "standard deviation of the first weights",
                {.is_of_start = true}),
        setting("norm_eps", &C::norm_eps, {1e-12, 1}, "the norms' epsilon",
                {.published = "layer_norm_epsilon", .assumed = 1e-5}),
        setting("bias", &C::bias, {}, "biases in projections and norms",
                {.shown_by = "h.0.attn.c_attn.bias"}),
        setting("tied", &C::tied, {}, "the head is the token table",
                {.published = "tie_word_embeddings", .assumed = true})};
  }
};

// A size by name: "gpt2-124m" (also "gpt2"), "gpt2-355m" ("gpt2-medium"), "gpt2-774m"
// ("gpt2-large"), "gpt2-1558m" ("gpt2-xl"). The vocabulary is padded from 50,257 to 50,304, a
// multiple of 64. UserError E0712 with the nearest name.
Gpt2Config gpt2_config(std::string_view name);

// A GPT-2.
class Gpt2 : public Decoder {
 public:
  // UserError E0210, E0211: sizes that are out of range, or do not fit together.
  explicit Gpt2(const Gpt2Config& config);

  // The sizes that it was made with.
  const Gpt2Config& config() const { return config_; }

 private:
  Gpt2Config config_;
};

}  // namespace aloft::models

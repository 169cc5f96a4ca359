// The Gemma 2 family (Riviere et al. 2024): a Gemma with norms before and behind both parts of a
// block, capped scores and logits, and a window in every other block.
#pragma once

#include "models/gemma.h"

namespace aloft::models {

// Where a Gemma 2 begins: the sizes of Gemma 2 2B.
struct Gemma2Defaults : GemmaDefaults {
  static constexpr std::int64_t layers = 26, heads = 8, kv_heads = 4, dim = 2304, hidden = 9216,
                                vocab = 256000, score_width = 256, window = 4096;
  static constexpr double attention_cap = 50, logit_cap = 30;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_layers = 26, published_heads = 8, published_kv_heads = 4,
                                published_dim = 2304, published_hidden = 9216;
  static constexpr std::string_view activation_key = "hidden_activation";
  // Words there that mean ours.
  static Words activation_synonyms() { return {}; }
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{
        attention_bias_field<C>(),
        score_width_field<C>(),
        window_field<C>(4096),
        layer_windows_field<C>(),
        logit_cap_field<C>(30.0),
        setting("attention_cap", &C::attention_cap, {0, 1e9},
                "scores are bent to stay below; 0: not",
                {.published = "attn_logit_softcapping", .assumed = 50.0, .null_is = 0.0})};
  }
  static DecoderDescription description(const RotaryConfig<Gemma2Defaults>& c);
};
// Norms before and behind both parts of a block.
inline DecoderNames gemma2_names() {
  DecoderNames n;
  n.attention_norm_after = "post_attention_layernorm";
  n.mlp_norm = "pre_feedforward_layernorm", n.mlp_norm_after = "post_feedforward_layernorm";
  return n;
}
// The settings of a Gemma2.
using Gemma2Config = RotaryConfig<Gemma2Defaults>;
// A Gemma2.
class Gemma2 : public RotaryDecoder<Gemma2Defaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

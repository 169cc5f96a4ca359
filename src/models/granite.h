// The Granite family (Granite Team 2024): a Llama with factors of its rows, of what its parts add,
// of its scores and of its logits.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a Granite begins: the sizes of Granite 3.1 2B.
struct GraniteDefaults : RotaryDefaults {
  static constexpr std::int64_t layers = 40, heads = 32, kv_heads = 8, dim = 2048, hidden = 8192,
                                vocab = 49155, context = 131072;
  static constexpr double rotary_base = 5e6, norm_eps = 1e-5, score_factor = 0.125;
  static constexpr bool tied = true;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_kv_heads = 0, published_hidden = 11008,
                                published_context = 2048, published_vocab = 32000;
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{
        attention_bias_field<C>(),
        mlp_bias_field<C>(),
        setting("embedding_factor", &C::embedding_factor, {0, 1e9}, "factor of the tokens' rows",
                {.published = "embedding_multiplier", .assumed = 1.0}),
        setting("residual_factor", &C::residual_factor, {0, 1e9},
                "factor of what a part of a block adds",
                {.published = "residual_multiplier", .assumed = 1.0}),
        setting("score_factor", &C::score_factor, {1e-9, 1e9}, "factor of the scores",
                {.published = "attention_multiplier", .assumed = 1.0}),
        setting("logit_divisor", &C::logit_divisor, {1e-9, 1e9}, "what logits are divided by",
                {.published = "logits_scaling", .assumed = 1.0})};
  }
  static DecoderDescription description(const RotaryConfig<GraniteDefaults>& c);
};
// The settings of a Granite.
using GraniteConfig = RotaryConfig<GraniteDefaults>;
// A Granite.
class Granite : public RotaryDecoder<GraniteDefaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

// The SmolLM3 family (Hugging Face 2025): a Llama of which every fourth block does not look at
// positions. SmolLM and SmolLM2 are Llamas (llama.h).
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a SmolLM3 begins: the sizes of SmolLM3-3B.
struct SmolLm3Defaults : RotaryDefaults {
  static constexpr std::int64_t layers = 36, heads = 16, kv_heads = 4, dim = 2048, hidden = 11008,
                                vocab = 128256, context = 65536, plain_every = 4;
  static constexpr double rotary_base = 5e6;
  static constexpr bool tied = true;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_layers = 36, published_heads = 16, published_kv_heads = 4,
                                published_dim = 2048, published_hidden = 11008,
                                published_context = 32768, published_vocab = 128256;
  static constexpr double published_base = 2e6;
  static constexpr bool published_tied = true;
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    using I = std::int64_t;
    return FieldList{
        attention_bias_field<C>(),
        mlp_bias_field<C>(),
        window_field<C>(0),
        windowed_field<C>(),
        layer_windows_field<C>(),
        setting(
            "layer_turns", &C::layer_turns, {0, 1},
            "1 for each block that looks at positions, 0 for each that does not; none: by "
            "plain_every",
            {.published = "no_rope_layers", .assumed = std::vector<I>(), .only_if_other = true}),
        setting("plain_every", &C::plain_every, {1, 1000}, "every such block looks at no positions",
                {.published = "no_rope_layer_interval", .assumed = I{4}})};
  }
  static DecoderDescription description(const RotaryConfig<SmolLm3Defaults>& c);
};
// The settings of a SmolLm3.
using SmolLm3Config = RotaryConfig<SmolLm3Defaults>;
// A SmolLm3.
class SmolLm3 : public RotaryDecoder<SmolLm3Defaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

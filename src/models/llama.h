// The Llama family (Touvron et al. 2023; Dubey et al. 2024): RMS norms, rotary positions, grouped
// keys and values, a gated feed-forward part (Shazeer 2020, SwiGLU), no biases. Parameters have
// Hugging Face's names without "model." (rotary_decoder.h). SmolLM's files say that they are
// Llamas.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a Llama begins.
struct LlamaDefaults : RotaryDefaults {
  static constexpr std::int64_t layers = 12, heads = 12, kv_heads = 4, dim = 768, hidden = 2048,
                                vocab = 32000, context = 2048;
  static constexpr double norm_eps = 1e-5;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_kv_heads = 0, published_hidden = 11008,
                                published_context = 2048, published_vocab = 32000;
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{attention_bias_field<C>(), mlp_bias_field<C>()};
  }
  static DecoderDescription description(const RotaryConfig<LlamaDefaults>& c);
};
// The sizes of a Llama.
using LlamaConfig = RotaryConfig<LlamaDefaults>;
// A Llama.
class Llama : public RotaryDecoder<LlamaDefaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

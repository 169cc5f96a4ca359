// The Mistral family (Jiang et al. 2023): a Llama with grouped keys and values and a wider
// feed-forward part. Its first release saw a window of 4096 positions, later ones see all.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a Mistral begins: the sizes of Mistral 7B v0.3.
struct MistralDefaults : RotaryDefaults {
  static constexpr std::int64_t layers = 32, heads = 32, kv_heads = 8, dim = 4096, hidden = 14336,
                                vocab = 32768, context = 32768;
  static constexpr double rotary_base = 1e6, norm_eps = 1e-5;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_kv_heads = 8, published_hidden = 14336,
                                published_context = 131072, published_vocab = 32000;
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{window_field<C>(4096)};
  }
  static DecoderDescription description(const RotaryConfig<MistralDefaults>& c);
};
// The sizes of a Mistral.
using MistralConfig = RotaryConfig<MistralDefaults>;
// A Mistral.
class Mistral : public RotaryDecoder<MistralDefaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

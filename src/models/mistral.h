// The Mistral family (Jiang et al. 2023): a Llama with grouped keys and values and a wider
// feed-forward part. Its first release saw a window of 4096 positions, later ones see all: a
// window is refused.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a Mistral begins: the sizes of Mistral 7B v0.3.
struct MistralDefaults {
  static constexpr std::int64_t layers = 32, heads = 32, kv_heads = 8, dim = 4096, hidden = 14336,
                                vocab = 32768, context = 32768;
  static constexpr double rotary_base = 1e6, norm_eps = 1e-5;
  static constexpr bool tied = false;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_kv_heads = 8, published_hidden = 14336,
                                published_context = 131072, published_vocab = 32000;
};
// The sizes of a Mistral.
using MistralConfig = RotaryConfig<MistralDefaults>;

// A Mistral.
class Mistral : public Decoder {
 public:
  // UserError E0210, E0211: sizes that are out of range, or do not fit together.
  explicit Mistral(const MistralConfig& config);
  const MistralConfig& config() const { return config_; }  // the sizes that it was made with

 private:
  MistralConfig config_;
};

}  // namespace aloft::models

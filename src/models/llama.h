// The Llama family (Touvron et al. 2023): RMS norms, rotary positions, grouped keys and values, a
// gated feed-forward part (Shazeer 2020, SwiGLU), no biases. Parameters have Hugging Face's names
// without "model." (rotary_decoder.h).
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a Llama begins.
struct LlamaDefaults {
  static constexpr std::int64_t layers = 12, heads = 12, kv_heads = 4, dim = 768, hidden = 2048,
                                vocab = 32000, context = 2048;
  static constexpr double rotary_base = 10000, norm_eps = 1e-5;
  static constexpr bool tied = false;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_kv_heads = 0, published_hidden = 11008,
                                published_context = 2048, published_vocab = 32000;
};
// The sizes of a Llama.
using LlamaConfig = RotaryConfig<LlamaDefaults>;

// A Llama.
class Llama : public Decoder {
 public:
  // UserError E0210, E0211: sizes that are out of range, or do not fit together.
  explicit Llama(const LlamaConfig& config);
  const LlamaConfig& config() const { return config_; }  // the sizes that it was made with

 private:
  LlamaConfig config_;
};

}  // namespace aloft::models

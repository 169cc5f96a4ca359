// The Llama family (Touvron et al. 2023): RMS norms, rotary positions, grouped keys and values, a
// gated feed-forward part (Shazeer 2020, SwiGLU), no biases. Parameters have Hugging Face's names
// without "model." (rotary_decoder.h).
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// The sizes of a Llama.
struct LlamaConfig {
  // Blocks, heads of queries, of keys and values (0: as many), features of a position.
  std::int64_t layers = 12, heads = 12, kv_heads = 4, dim = 768;
  std::int64_t hidden = 2048;  // width of the feed-forward part; 0: gated_width(dim)
  std::int64_t vocab = 32000, context = 2048;   // tokens there are; longest sequence
  double rotary_base = 10000, norm_eps = 1e-5;  // of the angles; added to mean squares
  double init_deviation = 0.02;                 // of the weights' first values
  double dropout = 0;                           // after the embedding and parts of a block
  bool tied = false;                            // the head is the token table
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;

  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_hidden = 11008, published_context = 2048,
                                published_vocab = 32000;
  // Its settings: keys of a recipe, and of config.json.
  template <class C = LlamaConfig>
  static auto fields() {
    return rotary_fields<C>();
  }
};

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

// The Qwen2 family (Yang et al. 2024): a Llama whose projections to queries, keys and values have
// biases, with a larger base of the angles; the small ones tie the head to the token table.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// The sizes of a Qwen2; the defaults are Qwen2-0.5B.
struct Qwen2Config {
  // Blocks, heads of queries, of keys and values (0: as many), features of a position.
  std::int64_t layers = 24, heads = 14, kv_heads = 2, dim = 896;
  std::int64_t hidden = 4864;  // width of the feed-forward part; 0: gated_width(dim)
  std::int64_t vocab = 151936, context = 131072;  // tokens there are; longest sequence
  double rotary_base = 1e6, norm_eps = 1e-6;      // of the angles; added to mean squares
  double init_deviation = 0.02;                   // of the weights' first values
  double dropout = 0;                             // after the embedding and parts of a block
  bool tied = true;                               // the head is the token table
  friend bool operator==(const Qwen2Config&, const Qwen2Config&) = default;

  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_hidden = 22016, published_context = 32768,
                                published_vocab = 151936;
  // Its settings: keys of a recipe, and of config.json.
  template <class C = Qwen2Config>
  static auto fields() {
    return rotary_fields<C>();
  }
};

// A Qwen2.
class Qwen2 : public Decoder {
 public:
  // UserError E0210, E0211: sizes that are out of range, or do not fit together.
  explicit Qwen2(const Qwen2Config& config);
  const Qwen2Config& config() const { return config_; }  // the sizes that it was made with

 private:
  Qwen2Config config_;
};

}  // namespace aloft::models

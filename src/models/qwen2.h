// The Qwen2 family (Yang et al. 2024): a Llama whose projections to queries, keys and values have
// biases, with a larger base of the angles; the small ones tie the head to the token table.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a Qwen2 begins: the sizes of Qwen2-0.5B.
struct Qwen2Defaults {
  static constexpr std::int64_t layers = 24, heads = 14, kv_heads = 2, dim = 896, hidden = 4864,
                                vocab = 151936, context = 32768;
  static constexpr double rotary_base = 1e6, norm_eps = 1e-6;
  static constexpr bool tied = true;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_kv_heads = 32, published_hidden = 22016,
                                published_context = 32768, published_vocab = 151936;
};
// The sizes of a Qwen2.
using Qwen2Config = RotaryConfig<Qwen2Defaults>;

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

// The Qwen3 family (Yang et al. 2025): a Llama with norms of each head's queries and keys, and
// heads whose width is its own.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a Qwen3 begins: the sizes of Qwen3-0.6B.
struct Qwen3Defaults : RotaryDefaults {
  static constexpr std::int64_t layers = 28, heads = 16, kv_heads = 8, dim = 1024, hidden = 3072,
                                vocab = 151936, context = 40960, head_width = 128;
  static constexpr double rotary_base = 1e6;
  static constexpr bool tied = true;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_kv_heads = 32, published_hidden = 22016,
                                published_context = 32768, published_vocab = 151936,
                                published_head_width = 128;
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{attention_bias_field<C>(), window_field<C>(4096), windowed_field<C>(),
                     window_from_field<C>(), layer_windows_field<C>()};
  }
  static DecoderDescription description(const RotaryConfig<Qwen3Defaults>& c);
};
// The sizes of a Qwen3.
using Qwen3Config = RotaryConfig<Qwen3Defaults>;
// A Qwen3.
class Qwen3 : public RotaryDecoder<Qwen3Defaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

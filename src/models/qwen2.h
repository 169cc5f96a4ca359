// The Qwen2 family (Yang et al. 2024), Qwen2.5 with it: a Llama whose projections to queries, keys
// and values have biases, with a larger base of the angles; the small ones tie the head to the
// token table.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a Qwen2 begins: the sizes of Qwen2-0.5B.
struct Qwen2Defaults : RotaryDefaults {
  static constexpr std::int64_t layers = 24, heads = 14, kv_heads = 2, dim = 896, hidden = 4864,
                                vocab = 151936, context = 32768;
  static constexpr double rotary_base = 1e6;
  static constexpr bool tied = true;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_kv_heads = 32, published_hidden = 22016,
                                published_context = 32768, published_vocab = 151936;
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{window_field<C>(4096), windowed_field<C>(), window_from_field<C>(),
                     layer_windows_field<C>()};
  }
  static DecoderDescription description(const RotaryConfig<Qwen2Defaults>& c);
};
// The sizes of a Qwen2.
using Qwen2Config = RotaryConfig<Qwen2Defaults>;
// A Qwen2.
class Qwen2 : public RotaryDecoder<Qwen2Defaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

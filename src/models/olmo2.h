// The OLMo 2 family (OLMo et al. 2024): a Llama whose norms stand behind the parts of a block, not
// before them, with norms of all queries and of all keys.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where an OLMo 2 begins: the sizes of OLMo 2 1B.
struct Olmo2Defaults : RotaryDefaults {
  static constexpr std::int64_t layers = 16, heads = 16, kv_heads = 16, dim = 2048, hidden = 8192,
                                vocab = 100352, context = 4096;
  static constexpr double rotary_base = 5e5;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_kv_heads = 0, published_hidden = 11008,
                                published_context = 2048, published_vocab = 50304;
  static constexpr double published_norm_eps = 1e-5;
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{attention_bias_field<C>()};
  }
  static DecoderDescription description(const RotaryConfig<Olmo2Defaults>& c);
};
// The settings of a Olmo2.
using Olmo2Config = RotaryConfig<Olmo2Defaults>;
// A Olmo2.
class Olmo2 : public RotaryDecoder<Olmo2Defaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

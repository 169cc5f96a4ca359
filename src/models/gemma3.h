// The Gemma 3 family (Kamath et al. 2025), its text models: a Gemma 2 without caps, with norms of
// each head's queries and keys; of six blocks five have a window, and angles of another base.
#pragma once

#include "models/gemma2.h"

namespace aloft::models {

// Where a Gemma 3 begins: the sizes of Gemma 3 1B.
struct Gemma3Defaults : Gemma2Defaults {
  static constexpr std::int64_t layers = 26, heads = 4, kv_heads = 1, dim = 1152, hidden = 6912,
                                vocab = 262144, context = 32768, window = 512, window_every = 6;
  static constexpr double rotary_base = 1e6, attention_cap = 0, logit_cap = 0;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_context = 131072, published_vocab = 262208;
  static constexpr double published_base = 1e6;
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    using I = std::int64_t;
    return FieldList{
        attention_bias_field<C>(),
        score_width_field<C>(),
        window_field<C>(4096),
        layer_windows_field<C>(),
        logit_cap_field<C>(0.0),
        setting("window_every", &C::window_every, {1, 1000}, "every such block has no window",
                {.published = "sliding_window_pattern", .assumed = I{6}, .only_if_other = true}),
        setting("local_base", &C::local_base, {1, 1e12}, "of the angles in blocks with a window",
                {.published = "rope_local_base_freq", .assumed = 10000.0})};
  }
  static DecoderDescription description(const RotaryConfig<Gemma3Defaults>& c);
};
// The settings of a Gemma3.
using Gemma3Config = RotaryConfig<Gemma3Defaults>;
// A Gemma3.
class Gemma3 : public RotaryDecoder<Gemma3Defaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

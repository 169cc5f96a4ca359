// The Gemma family (Mesnard et al. 2024): a Llama whose norms scale by 1 + weight, whose tokens'
// rows are multiplied by the root of the width, with wide heads and a GELU in the gate.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a Gemma begins: the sizes of Gemma 2B.
struct GemmaDefaults : RotaryDefaults {
  static constexpr std::int64_t layers = 18, heads = 8, kv_heads = 1, dim = 2048, hidden = 16384,
                                vocab = 256000, context = 8192, head_width = 256;
  static constexpr bool tied = true;
  static constexpr std::string_view activation = "gelu_pytorch_tanh";
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_layers = 28, published_heads = 16,
                                published_kv_heads = 16, published_dim = 3072,
                                published_hidden = 24576, published_context = 8192,
                                published_vocab = 256000, published_head_width = 256;
  static constexpr bool published_tied = true;
  static constexpr std::string_view published_activation = activation;
  static Words activation_synonyms() { return {{"gelu", activation}}; }  // of its first files
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{attention_bias_field<C>()};
  }
  static DecoderDescription description(const RotaryConfig<GemmaDefaults>& c);
};
// What all of them have in common.
template <class D>
DecoderDescription gemma_description(const RotaryConfig<D>& c, std::string_view family) {
  DecoderDescription d = rotary_description(c, family);
  d.norm = NormKind::RmsPlusOne;
  // As transformers 5 has it: what the module of the table gives is scaled.
  d.table_scale = std::sqrt(static_cast<double>(c.dim));
  return d;
}
PublishedForm gemma_published(std::string_view model_type, std::string_view architecture);
// The settings of a Gemma.
using GemmaConfig = RotaryConfig<GemmaDefaults>;
// A Gemma.
class Gemma : public RotaryDecoder<GemmaDefaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

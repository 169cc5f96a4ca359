// The Phi-3 family (Abdin et al. 2024), Phi-4-mini with it: a Llama whose projections to queries,
// keys and values are one, and those to gate and up; parameters stay as files have them.
#pragma once

#include "models/rotary_decoder.h"

namespace aloft::models {

// Where a Phi-3 begins: the sizes of Phi-3-mini.
struct Phi3Defaults : RotaryDefaults {
  static constexpr std::int64_t layers = 32, heads = 32, kv_heads = 32, dim = 3072, hidden = 8192,
                                vocab = 32064, context = 4096, rotary_original = 4096;
  static constexpr double norm_eps = 1e-5;
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_kv_heads = 0, published_dim = 3072,
                                published_hidden = 8192, published_context = 4096,
                                published_vocab = 32064, published_original = 4096;
  static constexpr double published_norm_eps = 1e-5;
  static constexpr std::string_view original_key = "original_max_position_embeddings";
  // Words there that mean ours.
  static Words kind_synonyms() { return {{"su", "longrope"}, {"yarn", "longrope"}}; }
  // Keys there under which dropout is written.
  static std::vector<std::string_view> dropout_keys() { return {"resid_pdrop", "embd_pdrop"}; }
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{window_field<C>(0), rotary_share_field<C>("partial_rotary_factor", 1)};
  }
  static DecoderDescription description(const RotaryConfig<Phi3Defaults>& c);
};
// The settings of a Phi3.
using Phi3Config = RotaryConfig<Phi3Defaults>;
// A Phi3.
class Phi3 : public RotaryDecoder<Phi3Defaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

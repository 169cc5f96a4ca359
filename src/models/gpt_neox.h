// The GPT-NeoX family (Black et al. 2022), Pythia with it: layer norms, rotary positions of a part
// of each head, a plain feed-forward part with a GELU; both parts of a block read what it is given.
// The projection to queries, keys and values is one, head after head.
#pragma once

#include "models/rotary_decoder.h"
#include "ops/extents.h"

namespace aloft::models {

// Where a GPT-NeoX begins: the sizes of Pythia 160M.
struct GptNeoxDefaults : RotaryDefaults {
  static constexpr std::int64_t layers = 12, heads = 12, dim = 768, hidden = 3072, vocab = 50304,
                                context = 2048;
  static constexpr double rotary_share = 0.25, norm_eps = 1e-5;
  static constexpr bool attention_bias = true, shares_keys = false;
  static constexpr std::string_view activation = "gelu";
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_layers = 44, published_heads = 64, published_dim = 6144,
                                published_hidden = 24576, published_context = 2048,
                                published_vocab = 50432;
  static constexpr double published_norm_eps = 1e-5;
  static constexpr std::string_view published_activation = activation, eps_key = "layer_norm_eps",
                                    base_key = "rotary_emb_base";
  // Keys there under which dropout is written.
  static std::vector<std::string_view> dropout_keys() { return {"hidden_dropout"}; }
  // The feed-forward part's width where nobody says it.
  static std::int64_t hidden_of(std::int64_t dim) { return extent_product(4, dim); }
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{
        rotary_share_field<C>("rotary_pct", 0.25), attention_bias_field<C>(),
        setting("parallel", &C::parallel, {}, "both parts of a block read what it is given",
                {.published = "use_parallel_residual", .assumed = true})};
  }
  static DecoderDescription description(const RotaryConfig<GptNeoxDefaults>& c);
};
// The settings of a GptNeox.
using GptNeoxConfig = RotaryConfig<GptNeoxDefaults>;
// A GptNeox.
class GptNeox : public RotaryDecoder<GptNeoxDefaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

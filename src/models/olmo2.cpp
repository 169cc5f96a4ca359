#include "models/olmo2.h"

namespace aloft::models {

DecoderDescription Olmo2Defaults::description(const Olmo2Config& c) {
  DecoderDescription d = rotary_description(c, "OLMo 2");
  d.names.attention_norm = d.names.mlp_norm = {};
  d.names.attention_norm_after = "post_attention_layernorm";
  d.names.mlp_norm_after = "post_feedforward_layernorm";
  d.attention.norm = nn::QueryKeyNorm::Whole;
  return d;
}

ModelFamily olmo2_family() {
  using C = Olmo2Config;
  ModelFamily f =
      family_of<C, Olmo2>("olmo2", "decoder: Llama's, with norms behind its parts", rotary_start());
  f.sizes = {rotary_size("olmo2-1b", C{}), rotary_size("olmo2-7b", C{32, 32, 32, 4096, 11008})};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("olmo2", "Olmo2ForCausalLM");
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

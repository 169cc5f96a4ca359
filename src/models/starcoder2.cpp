#include "models/starcoder2.h"

namespace aloft::models {

DecoderDescription Starcoder2Defaults::description(const Starcoder2Config& c) {
  DecoderDescription d = rotary_description(c, "StarCoder 2");
  d.norm = NormKind::Layer;
  d.attention.window = c.window;
  d.feed_forward.kind = FeedForward::Kind::Plain;
  d.feed_forward.in_name = "c_fc", d.feed_forward.out_name = "c_proj";
  d.feed_forward.in.bias = d.feed_forward.out.bias = c.attention_bias;
  return d;
}

ModelFamily starcoder2_family() {
  using C = Starcoder2Config;
  ModelFamily f = family_of<C, Starcoder2>(
      "starcoder2", "decoder: rotary positions, layer norms, GELU", rotary_start());
  f.sizes = {rotary_size("starcoder2-3b", C{})};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("starcoder2", "Starcoder2ForCausalLM");
  f.published.fixed = {{"norm_type", {"\"layer_norm\""}, true},
                       {"mlp_type", {"\"default\""}, true}};
  f.published.harmless.insert(f.published.harmless.end(),
                              {"residual_dropout", "embedding_dropout"});
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

#include "models/phi3.h"

namespace aloft::models {

DecoderDescription Phi3Defaults::description(const Phi3Config& c) {
  DecoderDescription d = rotary_description(c, "Phi-3");
  d.attention.layout = nn::QkvLayout::Joined;
  d.attention.window = c.window;
  d.feed_forward.kind = FeedForward::Kind::Joined;
  d.feed_forward.in_name = "gate_up_proj";
  return d;
}

ModelFamily phi3_family() {
  using C = Phi3Config;
  ModelFamily f =
      family_of<C, Phi3>("phi3", "decoder: Llama's, with joined projections", rotary_start());
  f.sizes = {rotary_size("phi3-mini", C{})};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("phi3", "Phi3ForCausalLM");
  const PublishedForm::Renamed own[] = {
      {"rope_parameters.original_max_position_embeddings", "original_max_position_embeddings"},
      {"rope_scaling.original_max_position_embeddings", "original_max_position_embeddings"}};
  auto& renamed = f.published.renamed;
  renamed.insert(renamed.begin(), std::begin(own), std::end(own));
  f.published.harmless.insert(f.published.harmless.end(), {"resid_pdrop", "embd_pdrop"});
  // What published files say of a plain one.
  f.published.fixed = {{"attention_bias", {"false"}, true},
                       {"mlp_bias", {"false"}, true},
                       {"lm_head_bias", {"false"}, true},
                       {"interpolate_factor", {"1"}, true},
                       {"full_attn_mod", {"1"}, true}};
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

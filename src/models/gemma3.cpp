#include "models/gemma3.h"

namespace aloft::models {

DecoderDescription Gemma3Defaults::description(const Gemma3Config& c) {
  DecoderDescription d = gemma_description(c, "Gemma 3");
  d.names = gemma2_names();
  d.attention.norm = nn::QueryKeyNorm::Heads;
  d.differs = [c](std::int64_t layer, nn::RotaryAttentionOptions& o) {
    const bool as_usual = c.window_every < 1 || (layer + 1) % c.window_every != 0;
    if (!is_marked(c.layer_windows, layer, as_usual)) return;
    o.window = c.window;
    o.base = c.local_base;
    o.scaling.clear();
  };
  return d;
}

ModelFamily gemma3_family() {
  using C = Gemma3Config;
  SettingValues usual = rotary_start();
  usual["score_width"] = std::int64_t{0};
  ModelFamily f =
      family_of<C, Gemma3>("gemma3", "decoder: Gemma 2's, with norms of queries and keys", usual);
  f.sizes = {rotary_size("gemma3-1b", C{})};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = gemma_published("gemma3_text", "Gemma3ForCausalLM");
  f.published.fixed.push_back({"attn_logit_softcapping", {"null"}});
  f.published.fixed.push_back(
      {"rope_parameters.sliding_attention.rope_type", {"\"default\""}, true});
  f.published.harmless.push_back("_sliding_window_pattern");
  // transformers 5 has angles by the kind of block.
  const PublishedForm::Renamed by_block[] = {
      {"rope_parameters.sliding_attention.rope_theta", "rope_local_base_freq"},
      {"rope_parameters.sliding_attention.*", "rope_parameters.sliding_attention.*"},
      {"rope_parameters.full_attention.rope_theta", "rope_theta"},
      {"rope_parameters.full_attention.*", "rope_scaling.*"}};
  auto& renamed = f.published.renamed;
  renamed.insert(renamed.begin(), std::begin(by_block), std::end(by_block));
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

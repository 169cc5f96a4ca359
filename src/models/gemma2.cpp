#include "models/gemma2.h"

namespace aloft::models {

DecoderDescription Gemma2Defaults::description(const Gemma2Config& c) {
  DecoderDescription d = gemma_description(c, "Gemma 2");
  d.names = gemma2_names();
  d.differs = [c](std::int64_t layer, nn::RotaryAttentionOptions& o) {
    if (is_marked(c.layer_windows, layer, layer % 2 == 0)) o.window = c.window;
  };
  return d;
}

ModelFamily gemma2_family() {
  using C = Gemma2Config;
  SettingValues usual = rotary_start();
  usual["score_width"] = std::int64_t{0};
  ModelFamily f = family_of<C, Gemma2>(
      "gemma2", "decoder: Gemma's, with norms behind, caps and windows", usual);
  C nine{42, 16, 8, 3584, 14336};
  f.sizes = {rotary_size("gemma2-2b", C{}), rotary_size("gemma2-9b", nine)};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = gemma_published("gemma2", "Gemma2ForCausalLM");
  f.published.harmless.insert(f.published.harmless.end(), {"hidden_act", "sliding_window_size"});
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

#include "models/smollm3.h"

namespace aloft::models {

DecoderDescription SmolLm3Defaults::description(const SmolLm3Config& c) {
  DecoderDescription d = rotary_description(c, "SmolLM3");
  d.differs = [c](std::int64_t layer, nn::RotaryAttentionOptions& o) {
    const bool as_usual = c.plain_every < 1 || (layer + 1) % c.plain_every != 0;
    o.turns = is_marked(c.layer_turns, layer, as_usual);
    if (c.windowed && is_marked(c.layer_windows, layer, !o.turns)) o.window = c.window;
  };
  return d;
}

ModelFamily smollm3_family() {
  using C = SmolLm3Config;
  ModelFamily f = family_of<C, SmolLm3>(
      "smollm3", "decoder: Llama's, with blocks that look at no positions", rotary_start());
  f.sizes = {rotary_size("smollm3-3b", C{})};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("smollm3", "SmolLM3ForCausalLM");
  f.published.harmless.insert(f.published.harmless.end(), {"max_window_layers", "pretraining_tp"});
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

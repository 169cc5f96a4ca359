#include "models/mistral.h"

namespace aloft::models {

DecoderDescription MistralDefaults::description(const MistralConfig& c) {
  DecoderDescription d = rotary_description(c, "Mistral");
  d.attention.window = c.window;
  return d;
}

ModelFamily mistral_family() {
  using C = MistralConfig;
  ModelFamily f = family_of<C, Mistral>("mistral", "decoder: Llama's, with or without a window",
                                        rotary_start());
  f.sizes = {rotary_size("mistral-7b", C{})};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("mistral", "MistralForCausalLM");
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

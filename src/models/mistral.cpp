#include "models/mistral.h"

namespace aloft::models {

Mistral::Mistral(const MistralConfig& c)
    : Decoder(rotary_sizes(c), rotary_form(c, "Mistral", false)), config_(c) {}

ModelFamily mistral_family() {
  using C = MistralConfig;
  ModelFamily f = family_of<C, Mistral>("mistral", "decoder: Llama's, without a sliding window",
                                        rotary_start());
  f.sizes = {rotary_size("mistral-7b", C{})};
  f.misfit = rotary_misfit;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("mistral", "MistralForCausalLM");
  f.published.fixed.push_back({"sliding_window", {"null"}, false, "4096"});
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

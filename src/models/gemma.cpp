#include "models/gemma.h"

namespace aloft::models {

DecoderDescription GemmaDefaults::description(const GemmaConfig& c) {
  return gemma_description(c, "Gemma");
}

PublishedForm gemma_published(std::string_view model_type, std::string_view architecture) {
  PublishedForm p = rotary_published(model_type, architecture);
  p.fixed = {{"use_bidirectional_attention", {"false"}}};
  p.harmless.insert(p.harmless.end(), {"cache_implementation"});
  return p;
}

ModelFamily gemma_family() {
  using C = GemmaConfig;
  ModelFamily f = family_of<C, Gemma>(
      "gemma", "decoder: Llama's, with scaled rows and norms of 1 + weight", rotary_start());
  f.sizes = {rotary_size("gemma-2b", C{}), rotary_size("gemma-7b", C{28, 16, 16, 3072, 24576})};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = gemma_published("gemma", "GemmaForCausalLM");
  f.published.fixed.push_back({"hidden_activation", {"\"gelu_pytorch_tanh\""}, true});
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

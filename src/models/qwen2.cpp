#include "models/qwen2.h"

namespace aloft::models {

Qwen2::Qwen2(const Qwen2Config& c)
    : Decoder(rotary_sizes(c), rotary_form(c, "Qwen2", true)), config_(c) {}

ModelFamily qwen2_family() {
  using C = Qwen2Config;
  ModelFamily f = family_of<C, Qwen2>(
      "qwen2", "decoder: Llama's, with biases on queries, keys and values", rotary_start());
  C seven{28, 28, 4, 3584, 18944, 152064};
  seven.tied = false;
  f.sizes = {rotary_size("qwen2-0.5b", C{}), rotary_size("qwen2-1.5b", C{28, 12, 2, 1536, 8960}),
             rotary_size("qwen2-7b", seven)};
  f.misfit = rotary_misfit;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("qwen2", "Qwen2ForCausalLM");
  f.published.fixed.push_back({"use_sliding_window", {"false"}});
  f.published.fixed.push_back({"layer_types", {"\"full_attention\""}, true});
  f.published.harmless.insert(f.published.harmless.end(), {"sliding_window", "max_window_layers"});
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

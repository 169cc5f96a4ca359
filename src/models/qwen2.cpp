#include "models/qwen2.h"

namespace aloft::models {

DecoderDescription Qwen2Defaults::description(const Qwen2Config& c) {
  DecoderDescription d = rotary_description(c, "Qwen2");
  d.attention.qkv_bias = true;
  d.differs = late_windows(c);
  return d;
}

ModelFamily qwen2_family() {
  using C = Qwen2Config;
  ModelFamily f = family_of<C, Qwen2>(
      "qwen2", "decoder: Llama's, with biases on queries, keys and values", rotary_start());
  C seven{28, 28, 4, 3584, 18944, 152064};
  seven.tied = false;
  f.sizes = {rotary_size("qwen2-0.5b", C{}), rotary_size("qwen2-1.5b", C{28, 12, 2, 1536, 8960}),
             rotary_size("qwen2-7b", seven)};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("qwen2", "Qwen2ForCausalLM");
  f.published.fixed = {{"use_mrope", {"false"}, true}};  // Qwen2.5's files say it
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

#include "models/qwen3.h"

namespace aloft::models {

DecoderDescription Qwen3Defaults::description(const Qwen3Config& c) {
  DecoderDescription d = rotary_description(c, "Qwen3");
  d.attention.norm = nn::QueryKeyNorm::Heads;
  d.differs = late_windows(c);
  return d;
}

ModelFamily qwen3_family() {
  using C = Qwen3Config;
  ModelFamily f = family_of<C, Qwen3>("qwen3", "decoder: Llama's, with norms of queries and keys",
                                      rotary_start());
  C eight{36, 32, 8, 4096, 12288};
  eight.tied = false;
  f.sizes = {rotary_size("qwen3-0.6b", C{}), rotary_size("qwen3-1.7b", C{28, 16, 8, 2048, 6144}),
             rotary_size("qwen3-8b", eight)};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("qwen3", "Qwen3ForCausalLM");
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

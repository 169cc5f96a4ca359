#include "models/llama.h"

namespace aloft::models {

DecoderDescription LlamaDefaults::description(const LlamaConfig& c) {
  return rotary_description(c, "Llama");
}

ModelFamily llama_family() {
  using C = LlamaConfig;
  ModelFamily f =
      family_of<C, Llama>("llama", "decoder: rotary positions, RMS norms, SwiGLU", rotary_start());
  // layers, heads, kv_heads, dim, hidden, vocab, context, rotary_base
  C small{16, 32, 8, 2048, 8192, 128256, 131072, 5e5};
  small.tied = true;
  small.rotary_kind = "llama3", small.rotary_factor = 32, small.rotary_original = 8192;
  small.rotary_low = 1, small.rotary_high = 4;
  ModelSize llama32 = rotary_size("llama3.2-1b", small);
  for (const char* key :
       {"rotary_kind", "rotary_factor", "rotary_original", "rotary_low", "rotary_high"})
    llama32.settings[key] = values_of(small).at(key);
  f.sizes = {rotary_size("llama-100m", C{}),
             rotary_size("tinyllama-1.1b", C{22, 32, 4, 2048, 5632}),
             rotary_size("llama2-7b", C{32, 32, 32, 4096, 11008, 32000, 4096}),
             rotary_size("llama2-13b", C{40, 40, 40, 5120, 13824, 32000, 4096}),
             rotary_size("llama3-8b", C{32, 32, 8, 4096, 14336, 128256, 8192, 5e5}),
             std::move(llama32)};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("llama", "LlamaForCausalLM");
  f.published.harmless.insert(f.published.harmless.end(), {"pretraining_tp", "is_llama_config"});
  f.published.fixed = {{"rope_interleaved", {"false"}, true}};  // SmolLM's files say it
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

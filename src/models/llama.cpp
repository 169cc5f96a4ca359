#include "models/llama.h"

namespace aloft::models {

Llama::Llama(const LlamaConfig& c)
    : Decoder(rotary_sizes(c), rotary_form(c, "Llama", false)), config_(c) {}

ModelFamily llama_family() {
  using C = LlamaConfig;
  ModelFamily f =
      family_of<C, Llama>("llama", "decoder: rotary positions, RMS norms, SwiGLU", rotary_start());
  // layers, heads, kv_heads, dim, hidden, vocab, context, rotary_base
  f.sizes = {rotary_size("llama-100m", C{}),
             rotary_size("tinyllama-1.1b", C{22, 32, 4, 2048, 5632}),
             rotary_size("llama2-7b", C{32, 32, 32, 4096, 11008, 32000, 4096}),
             rotary_size("llama2-13b", C{40, 40, 40, 5120, 13824, 32000, 4096}),
             rotary_size("llama3-8b", C{32, 32, 8, 4096, 14336, 128256, 8192, 5e5})};
  f.misfit = rotary_misfit;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("llama", "LlamaForCausalLM");
  f.published.fixed.push_back({"attention_bias", {"false"}});
  f.published.fixed.push_back({"mlp_bias", {"false"}});
  f.published.harmless.push_back("pretraining_tp");
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

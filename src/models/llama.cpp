#include "models/llama.h"

namespace aloft::models {

Llama::Llama(const LlamaConfig& c)
    : Decoder(rotary_sizes(c), rotary_form(c, "Llama", false)), config_(c) {}

ModelFamily llama_family() {
  using I = std::int64_t;
  ModelFamily f =
      family_of<LlamaConfig, Llama>("llama", "decoder: rotary positions, RMS norms, SwiGLU",
                                    {{"layers", I{6}},
                                     {"heads", I{8}},
                                     {"kv_heads", I{0}},
                                     {"dim", I{256}},
                                     {"hidden", I{0}},
                                     {"context", I{256}},
                                     {"vocab", I{0}}});
  const auto size = [](std::string_view name, I layers, I heads, I kv_heads, I dim, I hidden,
                       I context, I vocab, double base, bool tied) {
    return ModelSize{{name},
                     {{"layers", layers},
                      {"heads", heads},
                      {"kv_heads", kv_heads},
                      {"dim", dim},
                      {"hidden", hidden},
                      {"context", context},
                      {"vocab", vocab},
                      {"rotary_base", base},
                      {"tied", tied}}};
  };
  f.sizes = {size("llama-100m", 12, 12, 4, 768, 2048, 2048, 32000, 1e4, false),
             size("tinyllama-1.1b", 22, 32, 4, 2048, 5632, 2048, 32000, 1e4, false),
             size("llama2-7b", 32, 32, 32, 4096, 11008, 4096, 32000, 1e4, false),
             size("llama2-13b", 40, 40, 40, 5120, 13824, 4096, 32000, 1e4, false),
             size("llama3-8b", 32, 32, 8, 4096, 14336, 8192, 128256, 5e5, false)};
  f.misfit = rotary_misfit;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("llama", "LlamaForCausalLM");
  f.published.fixed.push_back({"attention_bias", {"false"}});
  f.published.fixed.push_back({"mlp_bias", {"false"}});
  f.published.harmless.push_back("pretraining_tp");
  f.made_up = {{"vocab", I{4096}}};
  return f;
}

}  // namespace aloft::models

#include "models/qwen2.h"

namespace aloft::models {

Qwen2::Qwen2(const Qwen2Config& c)
    : Decoder(rotary_sizes(c), rotary_form(c, "Qwen2", true)), config_(c) {}

ModelFamily qwen2_family() {
  using I = std::int64_t;
  ModelFamily f = family_of<Qwen2Config, Qwen2>(
      "qwen2", "decoder: Llama's, with biases on queries, keys and values",
      {{"layers", I{6}},
       {"heads", I{8}},
       {"kv_heads", I{0}},
       {"dim", I{256}},
       {"hidden", I{0}},
       {"context", I{256}},
       {"vocab", I{0}}});
  const auto size = [](std::string_view name, I layers, I heads, I kv_heads, I dim, I hidden,
                       I vocab, bool tied) {
    return ModelSize{{name},
                     {{"layers", layers},
                      {"heads", heads},
                      {"kv_heads", kv_heads},
                      {"dim", dim},
                      {"hidden", hidden},
                      {"context", I{32768}},
                      {"vocab", vocab},
                      {"tied", tied}}};
  };
  f.sizes = {size("qwen2-0.5b", 24, 14, 2, 896, 4864, 151936, true),
             size("qwen2-1.5b", 28, 12, 2, 1536, 8960, 151936, true),
             size("qwen2-7b", 28, 28, 4, 3584, 18944, 152064, false)};
  f.misfit = rotary_misfit;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("qwen2", "Qwen2ForCausalLM");
  f.published.fixed.push_back({"use_sliding_window", {"false"}});
  f.published.fixed.push_back({"layer_types", {"\"full_attention\""}, true});
  f.published.harmless.insert(f.published.harmless.end(), {"sliding_window", "max_window_layers"});
  f.made_up = {{"vocab", I{4096}}};
  return f;
}

}  // namespace aloft::models

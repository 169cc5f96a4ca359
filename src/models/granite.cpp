#include "models/granite.h"

namespace aloft::models {

DecoderDescription GraniteDefaults::description(const GraniteConfig& c) {
  DecoderDescription d = rotary_description(c, "Granite");
  d.attention.scale = c.score_factor;
  d.embedding_scale = c.embedding_factor;
  d.residual_scale = c.residual_factor;
  d.logit_scale = 1 / c.logit_divisor;
  return d;
}

ModelFamily granite_family() {
  using C = GraniteConfig;
  ModelFamily f =
      family_of<C, Granite>("granite", "decoder: Llama's, with factors", rotary_start());
  ModelSize two = rotary_size("granite3.1-2b", C{});
  two.settings["embedding_factor"] = 12.0, two.settings["residual_factor"] = 0.22;
  two.settings["score_factor"] = 0.015625, two.settings["logit_divisor"] = 8.0;
  f.sizes = {std::move(two)};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = rotary_published("granite", "GraniteForCausalLM");
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models

#include "models/rotary_decoder.h"

#include "ops/extents.h"

namespace aloft::models {

std::int64_t gated_width(std::int64_t dim) {
  constexpr std::int64_t kMultiple = 256;
  const std::int64_t width = extent_product(8, dim) / 3;
  return extent_product((width + kMultiple - 1) / kMultiple, kMultiple);
}

std::optional<Misfit> rotary_misfit(const SettingValues& values) {
  if (auto found = heads_misfit(values)) return found;
  const auto whole = [&](std::string_view key) {
    return std::get<std::int64_t>(values.find(key)->second);
  };
  if (whole("dim") / whole("heads") % 2 == 0) return std::nullopt;
  return Misfit{"heads",
                "{heads} heads{?heads} of dim {dim}{?dim} have an odd number of features each; "
                "rotary positions turn pairs"};
}

SettingValues rotary_start() {
  using I = std::int64_t;
  return {{"layers", I{6}}, {"heads", I{8}},     {"kv_heads", I{0}}, {"dim", I{256}},
          {"hidden", I{0}}, {"context", I{256}}, {"vocab", I{0}}};
}

DecoderForm rotary_names(std::string_view family) {
  DecoderForm out;
  out.family = family;
  out.tokens = "embed_tokens", out.blocks = "layers", out.norm = "norm";
  out.attention_norm = "input_layernorm", out.attention = "self_attn";
  out.mlp_norm = "post_attention_layernorm", out.mlp = "mlp";
  return out;
}

PublishedForm rotary_published(std::string_view model_type, std::string_view architecture) {
  PublishedForm p;
  p.model_type = model_type;
  p.architecture = architecture;
  p.prefix = "model.";
  p.ignored = {"layers.*.self_attn.rotary_emb.inv_freq"};  // of older files
  p.fixed = {{"hidden_act", {"\"silu\""}}, {"rope_parameters.rope_type", {"\"default\""}}};
  p.derived = {{"head_dim", [](const SettingValues& v) {
                  return std::get<std::int64_t>(v.find("dim")->second) /
                         std::get<std::int64_t>(v.find("heads")->second);
                }}};
  p.harmless = {"attention_dropout"};
  return p;
}

}  // namespace aloft::models

#include "models/rotary_decoder.h"

#include "models/decoder_parts.h"
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

DecoderForm rotary_form(const RotaryForm& f) {
  nn::need_positive(f.heads, std::string(f.family) + ": heads");
  if (f.hidden < 1) nn::need_positive(f.hidden, std::string(f.family) + ": hidden");
  DecoderForm out;
  out.init = nn::Init::normal(f.init_deviation);
  out.family = f.family;
  out.tokens = "embed_tokens", out.blocks = "layers", out.norm = "norm";
  out.attention_norm = "input_layernorm", out.attention = "self_attn";
  out.mlp_norm = "post_attention_layernorm", out.mlp = "mlp";
  out.make_norm = rms_norm_part(f.dim, {f.norm_eps});
  out.make_attention =
      rotary_attention_part(f.dim, f.heads, {f.kv_heads, f.rotary_base, f.qkv_bias, out.init});
  out.make_mlp = swiglu_part(f.dim, f.hidden, {false, out.init, {}});
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

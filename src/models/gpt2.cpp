#include "models/gpt2.h"

#include "models/decoder_parts.h"

namespace aloft::models {
namespace {

DecoderSizes sizes_of(const Gpt2Config& c) {
  if (c.hidden != 0) nn::need_positive(c.hidden, "GPT-2: hidden");
  return {c.layers, c.dim, c.vocab, c.context, c.dropout, c.tied};
}

DecoderForm form_of(const Gpt2Config& c) {
  nn::need_depth(c.layers, "GPT-2: layers");  // before the first weights are divided by it
  const auto projection = [&](const nn::Init& init) {
    return nn::LinearOptions{c.bias, init, nn::Init::zeros()};
  };
  DecoderForm f;
  f.init = nn::Init::normal(c.init_deviation);
  const nn::Init residual = nn::Init::gpt2_residual(c.layers, c.init_deviation);
  nn::AttentionOptions attention;
  attention.bias = c.bias;
  attention.weight_init = f.init;
  attention.out_init = residual;
  attention.bias_init = nn::Init::zeros();
  attention.qkv_name = "c_attn";
  attention.out_name = "c_proj";
  f.family = "GPT-2";
  f.tokens = "wte", f.positions = "wpe", f.blocks = "h", f.norm = "ln_f";
  f.attention_norm = "ln_1", f.attention = "attn", f.mlp_norm = "ln_2", f.mlp = "mlp";
  f.make_norm = layer_norm_part(c.dim, {c.norm_eps, c.bias});
  f.make_attention = fused_attention_part(c.dim, c.heads, attention);
  f.make_mlp =
      feed_forward_part(c.dim, {FeedForward::Kind::Plain, c.feed_forward(), "gelu_new",
                                projection(f.init), projection(residual), "c_fc", "", "c_proj"});
  return f;
}

ModelSize size(std::string_view name, std::string_view alias, std::int64_t layers,
               std::int64_t heads, std::int64_t dim) {
  return {{name, alias},
          {{"layers", layers},
           {"heads", heads},
           {"dim", dim},
           {"context", std::int64_t{1024}},
           {"vocab", std::int64_t{50304}}}};
}

PublishedForm published() {
  PublishedForm p;
  p.model_type = "gpt2";
  p.architecture = "GPT2LMHeadModel";
  p.prefix = "transformer.";
  p.transposed = {"h.*.c_*.weight"};
  p.ignored = {"h.*.attn.bias", "h.*.attn.masked_bias"};  // causal masks of older files
  p.fixed = {{"activation_function", {"\"gelu_new\"", "\"gelu_pytorch_tanh\""}},
             {"scale_attn_weights", {"true"}},
             {"scale_attn_by_inverse_layer_idx", {"false"}}};
  p.harmless = {"attn_pdrop",
                "embd_pdrop",
                "resid_pdrop",
                "n_ctx",
                "n_positions",
                "summary_*",
                "reorder_and_upcast_attn"};
  p.zeros = {"attn_pdrop"};
  return p;
}

}  // namespace

Gpt2::Gpt2(const Gpt2Config& config)
    : Decoder(sizes_of(config), form_of(config)), config_(config) {}

ModelFamily gpt2_family() {
  using I = std::int64_t;
  ModelFamily f = family_of<Gpt2Config, Gpt2>(
      "gpt2", "decoder: learned positions, layer norms, GELU",
      {{"layers", I{6}}, {"heads", I{8}}, {"dim", I{256}}, {"context", I{256}}, {"vocab", I{0}}});
  f.sizes = {size("gpt2-124m", "gpt2", 12, 12, 768), size("gpt2-355m", "gpt2-medium", 24, 16, 1024),
             size("gpt2-774m", "gpt2-large", 36, 20, 1280),
             size("gpt2-1558m", "gpt2-xl", 48, 25, 1600)};
  f.misfit = heads_misfit;
  f.least_kept = decoder_least_kept;
  f.published = published();
  f.is_usual = true;
  f.made_up = {{"vocab", I{4096}}};
  return f;
}

Gpt2Config gpt2_config(std::string_view name) {
  return config_of<Gpt2Config>(settings_of_size(*find_family("gpt2"), name));
}

}  // namespace aloft::models

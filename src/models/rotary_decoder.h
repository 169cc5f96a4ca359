// What Llama and the families after it share: RMS norms, rotary positions, grouped keys and values,
// a gated feed-forward part. A family says its defaults (LlamaDefaults), and what is its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/decoder.h"
#include "models/decoder_parts.h"
#include "models/decoder_settings.h"
#include "models/family.h"

namespace aloft::models {

// The width of a gated feed-forward part where nobody says it: two thirds of 4 dim, in whole
// multiples of 256, as Llama's.
std::int64_t gated_width(std::int64_t dim);

// Heads that do not fit (heads_misfit), or that have an odd number of features.
std::optional<Misfit> rotary_misfit(const SettingValues& values);

// As transformers keeps such a model; the caller adds what is its own.
PublishedForm rotary_published(std::string_view model_type, std::string_view architecture);

template <class C, class... More>
auto rotary_fields(const More&... more);

// The sizes of such a decoder, where a family D begins.
template <class D>
struct RotaryConfig {
  // Blocks, heads of queries, of keys and values (0: as many), features of a position.
  std::int64_t layers = D::layers, heads = D::heads, kv_heads = D::kv_heads, dim = D::dim;
  std::int64_t hidden = D::hidden;  // width of the feed-forward part; 0: gated_width(dim)
  std::int64_t vocab = D::vocab, context = D::context;  // tokens there are; longest sequence
  double rotary_base = D::rotary_base,
         norm_eps = D::norm_eps;  // of the angles; added to mean squares
  double init_deviation = 0.02;   // of the weights' first values
  double dropout = 0;             // after the embedding and parts of a block
  bool tied = D::tied;            // the head is the token table
  friend bool operator==(const RotaryConfig&, const RotaryConfig&) = default;

  using Defaults = D;
  // Its settings: keys of a recipe, and of config.json.
  template <class C = RotaryConfig>
  static auto fields() {
    return rotary_fields<C>();
  }
};

// A published size; what it does not say is where its family begins.
template <class D>
ModelSize rotary_size(std::string_view name, const RotaryConfig<D>& c) {
  return {{name},
          {{"layers", c.layers},
           {"heads", c.heads},
           {"kv_heads", c.kv_heads},
           {"dim", c.dim},
           {"hidden", c.hidden},
           {"context", c.context},
           {"vocab", c.vocab},
           {"rotary_base", c.rotary_base},
           {"tied", c.tied}}};
}
// What a recipe begins with: a model that a laptop trains, with the data's vocabulary.
SettingValues rotary_start();

// What the decoder itself asks of its sizes.
template <class D>
DecoderSizes rotary_sizes(const RotaryConfig<D>& c) {
  return {c.layers, c.dim, c.vocab, c.context, c.dropout, c.tied};
}

// Names and order of the parts, which are Hugging Face's without "model.": embed_tokens.weight,
// layers.0.self_attn.q_proj.weight, layers.0.mlp.gate_proj.weight, ..., norm.weight,
// lm_head.weight. `family`: for messages, "Llama".
DecoderForm rotary_names(std::string_view family);

// The parts. UserError E0210: heads or hidden below 1.
template <class D>
DecoderForm rotary_form(const RotaryConfig<D>& c, std::string_view family, bool qkv_bias) {
  const std::int64_t hidden = c.hidden == 0 ? gated_width(c.dim) : c.hidden;
  nn::need_positive(c.heads, std::string(family) + ": heads");
  nn::need_positive(hidden, std::string(family) + ": hidden");
  DecoderForm out = rotary_names(family);
  out.init = nn::Init::normal(c.init_deviation);
  out.make_norm = rms_norm_part(c.dim, {c.norm_eps});
  out.make_attention =
      rotary_attention_part(c.dim, c.heads, {c.kv_heads, c.rotary_base, qkv_bias, out.init});
  out.make_mlp = swiglu_part(c.dim, hidden, {false, out.init, {}});
  return out;
}

// The rows of RotaryConfig's members, for a config C that is one; a family's own behind them.
template <class C, class... More>
auto rotary_fields(const More&... more) {
  using I = std::int64_t;
  return FieldList{
      setting("layers", &C::layers, {1, 1000}, "transformer blocks",
              {.published = "num_hidden_layers", .assumed = I{32}}),
      setting("heads", &C::heads, {1, 1024}, "attention heads; divides dim",
              {.resumed = kOtherHeads, .published = "num_attention_heads", .assumed = I{32}}),
      setting("kv_heads", &C::kv_heads, {0, 1024}, "heads of keys and values; 0: heads",
              {.published = "num_key_value_heads",
               .assumed = C::Defaults::published_kv_heads,
               .derived = [](const SettingValues& v) { return config_of<C>(v).heads; }}),
      setting("dim", &C::dim, {1, 65536}, "width",
              {.published = "hidden_size", .assumed = I{4096}}),
      setting("hidden", &C::hidden, {0, 1 << 20}, "width of the feed-forward part; 0: by dim",
              {.published = "intermediate_size",
               .assumed = C::Defaults::published_hidden,
               .derived = [](const SettingValues& v) { return gated_width(config_of<C>(v).dim); }}),
      setting("context", &C::context, {1, 1 << 20}, "longest sequence, in tokens",
              {.published = "max_position_embeddings", .assumed = C::Defaults::published_context}),
      setting("vocab", &C::vocab, {1, 1 << 24}, "rows of the token table; 0: the tokenizer's",
              {.is_of_data = true,
               .may_exceed = true,
               .published = "vocab_size",
               .assumed = C::Defaults::published_vocab}),
      setting("dropout", &C::dropout, {0, 0.99}, "probability",
              {.may_change = true, .resumed = kOtherDropout}),
      setting("init_std", &C::init_deviation, {0, 10}, "standard deviation of the first weights",
              {.is_of_start = true}),
      setting("norm_eps", &C::norm_eps, {1e-12, 1}, "the norms' epsilon",
              {.published = "rms_norm_eps", .assumed = 1e-6}),
      setting("rotary_base", &C::rotary_base, {1, 1e12}, "of the angles by which positions turn",
              {.published = "rope_theta",
               .published_before = "rope_parameters.rope_theta",
               .assumed = 10000.0}),
      setting("tied", &C::tied, {}, "the head is the token table",
              {.published = "tie_word_embeddings", .assumed = false}),
      more...};
}

}  // namespace aloft::models

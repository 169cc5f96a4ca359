// What Llama and the families after it share: RMS norms, rotary positions, grouped keys and values,
// a gated feed-forward part. A family's config has these members and rotary_fields() of itself.
#pragma once

#include <optional>
#include <string_view>

#include "models/decoder.h"
#include "models/decoder_settings.h"
#include "models/family.h"

namespace aloft::models {

// The width of a gated feed-forward part where nobody says it: two thirds of 4 dim, in whole
// multiples of 256, as Llama's.
std::int64_t gated_width(std::int64_t dim);

// Heads that do not fit (heads_misfit), or that have an odd number of features.
std::optional<Misfit> rotary_misfit(const SettingValues& values);

// What differs between decoders of this kind.
struct RotaryForm {
  std::string_view family;  // for messages: "Llama"
  std::int64_t heads = 1, kv_heads = 0, dim = 1, hidden = 1;
  double rotary_base = 10000, norm_eps = 1e-5, init_deviation = 0.02;
  bool qkv_bias = false;
};
// With Hugging Face's names without "model.": embed_tokens.weight,
// layers.0.self_attn.q_proj.weight, layers.0.mlp.gate_proj.weight, ..., norm.weight,
// lm_head.weight.
DecoderForm rotary_form(const RotaryForm& f);

// As transformers keeps such a model; the caller adds what is its own.
PublishedForm rotary_published(std::string_view model_type, std::string_view architecture);

template <class C>
DecoderSizes rotary_sizes(const C& c) {
  return {c.layers, c.dim, c.vocab, c.context, c.dropout, c.tied};
}
template <class C>
DecoderForm rotary_form_of(const C& c, std::string_view family, bool qkv_bias) {
  return rotary_form({family, c.heads, c.kv_heads, c.dim,
                      c.hidden > 0 ? c.hidden : gated_width(c.dim), c.rotary_base, c.norm_eps,
                      c.init_deviation, qkv_bias});
}

// fields() of the configs that Llama and those after it share, but for their defaults; a family's
// own rows behind them.
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
               .assumed = I{0},
               .derived = [](const SettingValues& v) { return config_of<C>(v).heads; }}),
      setting("dim", &C::dim, {1, 65536}, "width",
              {.published = "hidden_size", .assumed = I{4096}}),
      setting("hidden", &C::hidden, {0, 1 << 20}, "width of the feed-forward part; 0: by dim",
              {.published = "intermediate_size",
               .assumed = C::published_hidden,
               .derived = [](const SettingValues& v) { return gated_width(config_of<C>(v).dim); }}),
      setting("context", &C::context, {1, 1 << 20}, "longest sequence, in tokens",
              {.published = "max_position_embeddings", .assumed = C::published_context}),
      setting("vocab", &C::vocab, {1, 1 << 24}, "rows of the token table; 0: the tokenizer's",
              {.is_of_data = true,
               .may_exceed = true,
               .published = "vocab_size",
               .assumed = C::published_vocab}),
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

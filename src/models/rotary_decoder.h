// What Llama and the families after it share: settings, with their names in config.json, and what
// they come to as a description (decoder_description.h). A family says where it begins and what
// transformers assumes of it (LlamaDefaults), which settings are its own, and its switches.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/decoder.h"
#include "models/decoder_description.h"
#include "models/decoder_settings.h"
#include "models/family.h"
#include "models/joined_fields.h"
#include "models/rotary_settings.h"

namespace aloft::models {

// The width of a gated feed-forward part where nobody says it: two thirds of 4 dim, in whole
// multiples of 256, as Llama's.
std::int64_t gated_width(std::int64_t dim);

// As transformers keeps such a model; the caller adds what is its own.
PublishedForm rotary_published(std::string_view model_type, std::string_view architecture);

// Where such families begin, unless they say otherwise.
struct RotaryDefaults {
  static constexpr std::int64_t kv_heads = 0, head_width = 0, score_width = 0, window = 0,
                                window_every = 0, plain_every = 0, rotary_original = 0;
  static constexpr double rotary_base = 10000, rotary_share = 1, norm_eps = 1e-6;
  static constexpr double attention_cap = 0, logit_cap = 0, score_factor = 0;
  static constexpr bool tied = false, attention_bias = false, mlp_bias = false;
  static constexpr std::string_view activation = "silu";
  static constexpr bool shares_keys = true;  // it has settings of heads of keys, and of their width
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_layers = 32, published_heads = 32, published_dim = 4096,
                                published_head_width = 0, published_original = 0;
  static constexpr double published_norm_eps = 1e-6, published_base = 10000;
  static constexpr bool published_tied = false;
  static constexpr std::string_view published_activation = "silu";
  // Keys there, where they have other names.
  static constexpr std::string_view eps_key = "rms_norm_eps", base_key = "rope_theta",
                                    activation_key = "hidden_act",
                                    original_key = "rope_scaling.original_max_position_embeddings";
  // Words there that mean ours, and keys under which dropout is written.
  using Words = std::vector<std::pair<std::string_view, std::string_view>>;
  static Words kind_synonyms() { return {}; }
  static Words activation_synonyms() { return {}; }
  static std::vector<std::string_view> dropout_keys() { return {}; }
  // The feed-forward part's width where nobody says it.
  static std::int64_t hidden_of(std::int64_t dim) { return gated_width(dim); }
  // A family's own rows, behind those of all.
  template <class C>
  static auto own_fields() {
    return FieldList<>{};
  }
};

template <class C>
auto rotary_fields();

// The settings of such a decoder, where a family D begins. A family has those of rotary_fields()
// and of its own_fields(); the others stay as they are.
template <class D>
struct RotaryConfig {
  // Blocks, heads of queries, of keys and values (0: as many), features of a position.
  std::int64_t layers = D::layers, heads = D::heads, kv_heads = D::kv_heads, dim = D::dim;
  std::int64_t hidden = D::hidden;                      // width of the feed-forward part; 0: by dim
  std::int64_t vocab = D::vocab, context = D::context;  // tokens there are; longest sequence
  double rotary_base = D::rotary_base,
         norm_eps = D::norm_eps;              // of the angles; added to mean squares
  double init_deviation = 0.02;               // of the weights' first values
  double dropout = 0;                         // after the embedding and parts of a block
  bool tied = D::tied;                        // the head is the token table
  std::int64_t head_width = D::head_width;    // features of a head; 0: dim / heads
  std::string activation{D::activation};      // of the feed-forward part
  bool attention_bias = D::attention_bias;    // of attention's projections
  bool mlp_bias = D::mlp_bias;                // of the feed-forward part's
  std::int64_t score_width = D::score_width;  // scores are over its root; 0: head_width
  double attention_cap = D::attention_cap;    // scores s become cap tanh(s / cap); 0: they stay
  double logit_cap = D::logit_cap;            // logits likewise
  bool parallel = true;                       // both parts of a block read what it is given
  // Factors of the tokens' rows, of what a part adds, of the scores (0: by their width); what
  // logits are divided by.
  double embedding_factor = 1, residual_factor = 1, score_factor = D::score_factor,
         logit_divisor = 1;
  // Positions that are seen, their own last, in blocks with a window; 0: all.
  std::int64_t window = D::window;
  bool windowed = false;                         // blocks from window_from on have one
  std::int64_t window_from = 0;                  // counted from 0
  std::int64_t window_every = D::window_every;   // every such block has none
  std::vector<std::int64_t> layer_windows = {};  // 1 for each block with one; empty: as said above
  std::vector<std::int64_t> layer_turns = {};    // 1 for each block that looks at positions
  std::int64_t plain_every = D::plain_every;     // every such block looks at none; layer_turns wins
  double local_base = 10000;                     // of the angles of blocks with a window
  // How the angles are stretched (rotary_settings.h).
  double rotary_share = D::rotary_share;  // of a head's features, which turn
  std::string rotary_kind = "default";
  double rotary_factor = 0;
  std::int64_t rotary_original = D::rotary_original;
  double rotary_low = 0, rotary_high = 0, rotary_fast = 0, rotary_slow = 0;
  double rotary_mscale = 0, rotary_mscale_all = 0, rotary_magnitude = 0;
  bool rotary_truncate = true;
  std::vector<double> rotary_within = {}, rotary_beyond = {};
  friend bool operator==(const RotaryConfig&, const RotaryConfig&) = default;

  using Defaults = D;
  // Its settings: keys of a recipe, and of config.json.
  template <class C = RotaryConfig>
  static auto fields() {
    return joined(rotary_fields<C>(), D::template own_fields<C>());
  }
  // `head_width`, or dim / heads; 0 where there are none.
  std::int64_t width_of_a_head() const {
    return head_width != 0 || heads < 1 ? head_width : dim / heads;
  }
};

// A published size; what it does not say is where its family begins.
template <class D>
ModelSize rotary_size(std::string_view name, const RotaryConfig<D>& c) {
  ModelSize out{{name},
                {{"layers", c.layers},
                 {"heads", c.heads},
                 {"dim", c.dim},
                 {"hidden", c.hidden},
                 {"context", c.context},
                 {"vocab", c.vocab},
                 {"rotary_base", c.rotary_base},
                 {"tied", c.tied}}};
  if (!D::shares_keys) return out;
  out.settings["kv_heads"] = c.kv_heads;
  out.settings["head_width"] = c.head_width;
  return out;
}
// What a recipe begins with: a model that a laptop trains, with the data's vocabulary.
SettingValues rotary_start(bool shares_keys = true);

// What a config says of its angles.
template <class D>
RotarySettings rotary_settings(const RotaryConfig<D>& c) {
  RotarySettings s;
  s.kind = c.rotary_kind, s.base = c.rotary_base, s.context = c.context;
  s.width = c.width_of_a_head();
  if (c.rotary_share < 1)
    s.width = static_cast<std::int64_t>(static_cast<double>(s.width) * c.rotary_share);
  s.factor = c.rotary_factor, s.original = c.rotary_original;
  s.low = c.rotary_low, s.high = c.rotary_high, s.fast = c.rotary_fast, s.slow = c.rotary_slow;
  s.mscale = c.rotary_mscale, s.mscale_all = c.rotary_mscale_all;
  s.truncate = c.rotary_truncate, s.magnitude = c.rotary_magnitude;
  s.within = c.rotary_within, s.beyond = c.rotary_beyond;
  return s;
}

// UserError E0210 unless share is above 0 and at most 1.
void need_share(double share, std::string_view family);
// Why a list of blocks is not one of `layers`; nothing where it is, or is empty.
std::optional<Misfit> list_misfit(std::string_view key, const std::vector<std::int64_t>& list,
                                  std::int64_t layers);

// What does not fit together of a config C: heads (heads_misfit), angles, lists of blocks.
template <class C>
std::optional<Misfit> rotary_misfit(const SettingValues& values) {
  if (auto found = heads_misfit(values)) return found;
  const C c = config_of<C>(values);
  if (auto found = rotary_misfit(rotary_settings(c))) return found;
  if (auto found = list_misfit("layer_windows", c.layer_windows, c.layers)) return found;
  return list_misfit("layer_turns", c.layer_turns, c.layers);
}

// The switches that settings alone decide; a family adds its own. `family`: for messages, "Llama".
// Parameters have Hugging Face's names without "model.": embed_tokens.weight,
// layers.0.self_attn.q_proj.weight, layers.0.mlp.gate_proj.weight, ..., norm.weight,
// lm_head.weight.
template <class D>
DecoderDescription rotary_description(const RotaryConfig<D>& c, std::string_view family) {
  need_share(c.rotary_share, family);
  DecoderDescription d;
  d.family = family;
  d.sizes = {c.layers, c.dim, c.vocab, c.context, c.dropout, c.tied};
  d.init = nn::Init::normal(c.init_deviation);
  d.norm_eps = c.norm_eps;
  d.heads = c.heads;
  d.attention.kv_heads = c.kv_heads;
  d.attention.base = c.rotary_base;
  d.attention.qkv_bias = d.attention.out_bias = c.attention_bias;
  d.attention.width = c.head_width;
  const RotarySettings angles = rotary_settings(c);
  if (c.rotary_share < 1) d.attention.turned = angles.width;
  d.attention.scaling = scaling_of(angles).str();
  if (c.score_width > 0) d.attention.scale = 1 / std::sqrt(static_cast<double>(c.score_width));
  d.attention.cap = c.attention_cap;
  d.logit_cap = c.logit_cap;
  d.feed_forward.hidden = c.hidden == 0 ? D::hidden_of(c.dim) : c.hidden;
  d.feed_forward.activation = c.activation;
  d.feed_forward.in.bias = d.feed_forward.out.bias = c.mlp_bias;
  return d;
}

// Whether block `layer` is marked in a list, or where that is empty, as `otherwise`.
inline bool is_marked(const std::vector<std::int64_t>& list, std::int64_t layer, bool otherwise) {
  if (list.empty()) return otherwise;
  return layer < static_cast<std::int64_t>(list.size()) && list[layer] != 0;
}

// Windows of the blocks that the list marks, or else of those from window_from on: Qwen's.
template <class D>
auto late_windows(const RotaryConfig<D>& c) {
  return [c](std::int64_t layer, nn::RotaryAttentionOptions& o) {
    if (c.windowed && is_marked(c.layer_windows, layer, layer >= c.window_from))
      o.window = c.window;
  };
}

// A model of a family: D::description(config) says which.
template <class D>
class RotaryDecoder : public Decoder {
 public:
  // UserError E0210, E0211: sizes that are out of range, or do not fit together.
  explicit RotaryDecoder(const RotaryConfig<D>& config)
      : RotaryDecoder(config, D::description(config)) {}
  const RotaryConfig<D>& config() const { return config_; }  // the sizes that it was made with

 private:
  RotaryDecoder(const RotaryConfig<D>& config, const DecoderDescription& d)
      : Decoder(d.sizes, form_of(d)), config_(config) {}

  RotaryConfig<D> config_;
};

// ---- rows of settings ----

// Heads of keys and values, and their width.
template <class C>
auto shared_keys_fields() {
  using I = std::int64_t;
  if constexpr (!C::Defaults::shares_keys)
    return FieldList<>{};
  else
    return FieldList{
        setting("kv_heads", &C::kv_heads, {0, 1024}, "heads of keys and values; 0: heads",
                {.published = "num_key_value_heads",
                 .assumed = I{C::Defaults::published_kv_heads},
                 .derived = [](const SettingValues& v) { return config_of<C>(v).heads; }}),
        setting(
            "head_width", &C::head_width, {0, 65536}, "features of a head; 0: dim / heads",
            {.published = "head_dim",
             .assumed = I{C::Defaults::published_head_width},
             .derived = [](const SettingValues& v) { return config_of<C>(v).width_of_a_head(); }})};
}

// How angles are stretched.
template <class C>
auto rotary_scaling_fields() {
  using I = std::int64_t;
  using List = std::vector<double>;
  const auto published = [](std::string_view key, SettingValue assumed) {
    return SettingRole{.published = key, .assumed = std::move(assumed), .only_if_other = true};
  };
  return FieldList{
      setting("rotary_kind", &C::rotary_kind, {.words = rotary_kinds()},
              "how angles are stretched for sequences longer than first",
              {.published = "rope_scaling.rope_type",
               .assumed = std::string("default"),
               .only_if_other = true,
               .synonyms = C::Defaults::kind_synonyms()}),
      setting("rotary_factor", &C::rotary_factor, {0, 1e9},
              "by what; 0, of longrope: context by the first",
              published("rope_scaling.factor", 0.0)),
      setting("rotary_original", &C::rotary_original, {0, 1 << 30},
              "longest sequence at first; 0: context",
              published(C::Defaults::original_key, I{C::Defaults::published_original})),
      setting("rotary_low", &C::rotary_low, {0, 1e9},
              "of llama3: turns of a pair that is stretched",
              published("rope_scaling.low_freq_factor", 0.0)),
      setting("rotary_high", &C::rotary_high, {0, 1e9}, "of llama3: turns of one that is not",
              published("rope_scaling.high_freq_factor", 0.0)),
      setting("rotary_fast", &C::rotary_fast, {0, 1e9},
              "of yarn: turns of a pair that stays; 0: 32",
              published("rope_scaling.beta_fast", 0.0)),
      setting("rotary_slow", &C::rotary_slow, {0, 1e9}, "of yarn: of one that is stretched; 0: 1",
              published("rope_scaling.beta_slow", 0.0)),
      setting("rotary_mscale", &C::rotary_mscale, {0, 1e9}, "of yarn: weight of its magnitude",
              published("rope_scaling.mscale", 0.0)),
      setting("rotary_mscale_all", &C::rotary_mscale_all, {0, 1e9}, "of yarn: of what that is over",
              published("rope_scaling.mscale_all_dim", 0.0)),
      setting("rotary_truncate", &C::rotary_truncate, {}, "of yarn: its bounds are whole pairs",
              published("rope_scaling.truncate", true)),
      setting("rotary_magnitude", &C::rotary_magnitude, {0, 1e9},
              "factor of cosines and sines; 0: as the kind has it",
              published("rope_scaling.attention_factor", 0.0)),
      setting("rotary_within", &C::rotary_within, {0, 1e9},
              "of longrope: a pair's divisor in sequences as first",
              published("rope_scaling.short_factor", List())),
      setting("rotary_beyond", &C::rotary_beyond, {0, 1e9}, "of longrope: in longer ones",
              published("rope_scaling.long_factor", List()))};
}

// The rows of all such families.
template <class C>
auto rotary_fields() {
  using I = std::int64_t;
  using D = typename C::Defaults;
  const auto front =
      FieldList{setting("layers", &C::layers, {1, 1000}, "transformer blocks",
                        {.published = "num_hidden_layers", .assumed = I{D::published_layers}}),
                setting("heads", &C::heads, {1, 1024}, "attention heads; divides dim",
                        {.resumed = kOtherHeads,
                         .published = "num_attention_heads",
                         .assumed = I{D::published_heads}})};
  const auto back = FieldList{
      setting("dim", &C::dim, {1, 65536}, "width",
              {.published = "hidden_size", .assumed = I{D::published_dim}}),
      setting(
          "hidden", &C::hidden, {0, 1 << 20}, "width of the feed-forward part; 0: by dim",
          {.published = "intermediate_size",
           .assumed = I{D::published_hidden},
           .derived = [](const SettingValues& v) { return D::hidden_of(config_of<C>(v).dim); }}),
      setting("context", &C::context, {1, 1 << 20}, "longest sequence, in tokens",
              {.published = "max_position_embeddings", .assumed = I{D::published_context}}),
      setting("vocab", &C::vocab, {1, 1 << 24}, "rows of the token table; 0: the tokenizer's",
              {.is_of_data = true,
               .may_exceed = true,
               .published = "vocab_size",
               .assumed = I{D::published_vocab}}),
      setting("dropout", &C::dropout, {0, 0.99}, "probability",
              {.may_change = true, .resumed = kOtherDropout, .written = D::dropout_keys()}),
      setting("init_std", &C::init_deviation, {0, 10}, "standard deviation of the first weights",
              {.is_of_start = true}),
      setting("norm_eps", &C::norm_eps, {1e-12, 1}, "the norms' epsilon",
              {.published = D::eps_key, .assumed = D::published_norm_eps}),
      setting("activation", &C::activation, {.words = decoder_activations()},
              "of the feed-forward part",
              {.published = D::activation_key,
               .assumed = std::string(D::published_activation),
               .synonyms = D::activation_synonyms()}),
      setting("rotary_base", &C::rotary_base, {1, 1e12}, "of the angles by which positions turn",
              {.published = D::base_key, .assumed = D::published_base}),
      setting("tied", &C::tied, {}, "the head is the token table",
              {.published = "tie_word_embeddings", .assumed = D::published_tied})};
  return joined(front, joined(shared_keys_fields<C>(), joined(back, rotary_scaling_fields<C>())));
}

// Rows that some families have.
template <class C>
auto attention_bias_field() {
  return setting("attention_bias", &C::attention_bias, {}, "biases of attention's projections",
                 {.published = "attention_bias", .assumed = C::Defaults::attention_bias});
}
template <class C>
auto mlp_bias_field() {
  return setting("mlp_bias", &C::mlp_bias, {}, "biases of the feed-forward part's projections",
                 {.published = "mlp_bias", .assumed = false});
}
// `assumed`: where config.json has none; null there: none.
template <class C>
auto window_field(std::int64_t assumed) {
  using I = std::int64_t;
  return setting("window", &C::window, {0, 1 << 30}, "positions that a block with one sees; 0: all",
                 {.published = "sliding_window", .assumed = assumed, .null_is = I{0}});
}
template <class C>
auto windowed_field() {
  return setting("windowed", &C::windowed, {}, "blocks have windows",
                 {.published = "use_sliding_window", .assumed = false});
}
template <class C>
auto layer_windows_field() {
  using List = std::vector<std::int64_t>;
  return setting("layer_windows", &C::layer_windows, {0, 1},
                 "1 for each block with a window, 0 for each without; none: as the family has it",
                 {.published = "layer_types",
                  .assumed = List(),
                  .only_if_other = true,
                  .words = {"full_attention", "sliding_attention"}});
}
template <class C>
auto window_from_field() {
  using I = std::int64_t;
  return setting("window_from", &C::window_from, {0, 1000}, "the first block with a window",
                 {.published = "max_window_layers", .assumed = I{28}});
}

template <class C>
auto rotary_share_field(std::string_view key, double assumed) {
  return setting("rotary_share", &C::rotary_share, {0.01, 1}, "share of a head that turns",
                 {.published = key, .assumed = assumed});
}
template <class C>
auto score_width_field() {
  using I = std::int64_t;
  return setting(
      "score_width", &C::score_width, {0, 65536}, "scores are over its root; 0: head_width",
      {.published = "query_pre_attn_scalar",
       .assumed = I{256},
       .derived = [](const SettingValues& v) { return config_of<C>(v).width_of_a_head(); }});
}
// `assumed`: where config.json has none; null there: none.
template <class C>
auto logit_cap_field(SettingValue assumed) {
  return setting(
      "logit_cap", &C::logit_cap, {0, 1e9}, "logits are bent to stay below; 0: not",
      {.published = "final_logit_softcapping", .assumed = std::move(assumed), .null_is = 0.0});
}

}  // namespace aloft::models

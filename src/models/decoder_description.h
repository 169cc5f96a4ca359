// One description of the decoders of today, as switches: what Llama, Qwen, Gemma, Phi, OLMo,
// StarCoder and GPT-NeoX differ in. A family makes one of its config, and a decoder is made of
// that. What a switch does stands where it works: nn/rotary_attention.h, decoder_parts.h,
// decoder.h.
#pragma once

#include <string_view>

#include "models/decoder.h"
#include "models/decoder_parts.h"

namespace aloft::models {

enum class NormKind {
  Rms,         // nn::RMSNorm
  RmsPlusOne,  // its scale is 1 + weight: Gemma's
  Layer,       // nn::LayerNorm, with a bias
};

// Names of the parts, as files have them: Llama's. A norm without a name is not there: which are
// says whether parts have one before them, behind them, or both.
struct DecoderNames {
  std::string_view tokens = "embed_tokens", blocks = "layers", norm = "norm", head = "lm_head";
  std::string_view attention_norm = "input_layernorm", attention = "self_attn",
                   attention_norm_after = {};
  std::string_view mlp_norm = "post_attention_layernorm", mlp = "mlp", mlp_norm_after = {};
};

struct DecoderDescription {
  std::string_view family;  // for messages: "Llama"
  DecoderSizes sizes;
  DecoderNames names;
  nn::Init init;
  NormKind norm = NormKind::Rms;
  double norm_eps = 1e-6;
  std::int64_t heads = 1;
  nn::RotaryAttentionOptions attention;
  // What differs from `attention` in a block: windows, angles. Null: nothing does.
  std::function<void(std::int64_t layer, nn::RotaryAttentionOptions& attention)> differs = nullptr;
  FeedForward feed_forward;
  bool is_parallel = false;    // both parts of a block read what it is given
  double table_scale = 1;      // factor of the tokens' rows, within the module of the table
  double embedding_scale = 1;  // the same, behind it
  double residual_scale = 1;   // factor of what a part adds
  double logit_scale = 1;      // factor of the logits
  double logit_cap = 0;        // logits l become cap tanh(l / cap); 0: they stay
};

// UserError E0210: heads or the width of the feed-forward part below 1, a cap below 0.
DecoderForm form_of(const DecoderDescription& d);

}  // namespace aloft::models

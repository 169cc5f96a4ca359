// What families of decoders (decoder.h) are put together from: norms, attentions, feed-forward
// parts. All are layers of nn/, or small ones of this file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/decoder.h"
#include "nn/attention.h"
#include "nn/norm.h"
#include "nn/rotary_attention.h"

namespace aloft::models {

// nn::LayerNorm and nn::RMSNorm of `dim` features.
DecoderForm::Make<DecoderPart> layer_norm_part(std::int64_t dim, const nn::LayerNormOptions& o);
DecoderForm::Make<DecoderPart> rms_norm_part(std::int64_t dim, const nn::RMSNormOptions& o);

// nn::MultiHeadAttention: one projection for queries, keys and values; positions are not looked at.
DecoderForm::MakeInBlock<DecoderAttention> fused_attention_part(std::int64_t dim,
                                                                std::int64_t heads,
                                                                const nn::AttentionOptions& o);
// nn::RotaryAttention, whose options may differ from block to block.
using RotaryOptionsOf = std::function<nn::RotaryAttentionOptions(std::int64_t layer)>;
DecoderForm::MakeInBlock<DecoderAttention> rotary_attention_part(std::int64_t dim,
                                                                 std::int64_t heads,
                                                                 const RotaryOptionsOf& options);

// The names of activations, which are transformers': "silu", "gelu_new" (gelu_tanh), "relu2", ...
std::vector<std::string_view> decoder_activations();
// The one of a name. UserError E0210 for a name that is none.
Tensor (*decoder_activation(std::string_view name))(Operand);

// A feed-forward part, dim -> hidden -> dim.
struct FeedForward {
  // Gated (Shazeer 2020): down_proj(activation(gate_proj(x)) * up_proj(x)); joined: gate and up are
  // one projection, gate first; plain: down(activation(in(x))).
  enum class Kind { Gated, Joined, Plain };
  Kind kind = Kind::Gated;
  std::int64_t hidden = 0;
  std::string activation = "silu";  // UserError E0210 for a name that is none
  nn::LinearOptions in, out;
  // The projections' names; the second is of gated ones alone.
  std::string in_name = "gate_proj", up_name = "up_proj", out_name = "down_proj";
};
DecoderForm::MakeInBlock<DecoderPart> feed_forward_part(std::int64_t dim, const FeedForward& f);

}  // namespace aloft::models

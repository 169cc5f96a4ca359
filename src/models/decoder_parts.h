// What families of decoders (decoder.h) are put together from: norms, attentions, feed-forward
// parts. All are layers of nn/, or small ones of this file.
#pragma once

#include <memory>
#include <string_view>

#include "models/decoder.h"
#include "nn/attention.h"
#include "nn/norm.h"
#include "nn/rotary_attention.h"

namespace aloft::models {

// nn::LayerNorm and nn::RMSNorm of `dim` features.
DecoderForm::Make<DecoderPart> layer_norm_part(std::int64_t dim, const nn::LayerNormOptions& o);
DecoderForm::Make<DecoderPart> rms_norm_part(std::int64_t dim, const nn::RMSNormOptions& o);

// nn::MultiHeadAttention: one projection for queries, keys and values; positions are not looked at.
DecoderForm::Make<DecoderAttention> fused_attention_part(std::int64_t dim, std::int64_t heads,
                                                         const nn::AttentionOptions& o);
// nn::RotaryAttention.
DecoderForm::Make<DecoderAttention> rotary_attention_part(std::int64_t dim, std::int64_t heads,
                                                          const nn::RotaryAttentionOptions& o);

// GPT-2's: c_proj(gelu_tanh(c_fc(x))), dim -> hidden -> dim. `in`, `out`: of the two layers.
DecoderForm::Make<DecoderPart> gelu_mlp_part(std::int64_t dim, std::int64_t hidden,
                                             const nn::LinearOptions& in,
                                             const nn::LinearOptions& out);
// Llama's (Shazeer 2020, SwiGLU): down_proj(silu(gate_proj(x)) * up_proj(x)).
DecoderForm::Make<DecoderPart> swiglu_part(std::int64_t dim, std::int64_t hidden,
                                           const nn::LinearOptions& o);

}  // namespace aloft::models

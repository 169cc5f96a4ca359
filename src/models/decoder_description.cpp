#include "models/decoder_description.h"

#include <cmath>
#include <string>

#include "base/error.h"

namespace aloft::models {
namespace {

DecoderForm::Make<DecoderPart> norm_of(const DecoderDescription& d) {
  if (d.norm == NormKind::Layer) return layer_norm_part(d.sizes.dim, {d.norm_eps, true});
  return rms_norm_part(d.sizes.dim, {d.norm_eps, d.norm == NormKind::RmsPlusOne});
}

// Norms of queries and keys are of the kind of the others.
RotaryOptionsOf attention_of(const DecoderDescription& d) {
  nn::RotaryAttentionOptions alike = d.attention;
  alike.weight_init = d.init;
  alike.norm_options = {d.norm_eps, d.norm == NormKind::RmsPlusOne};
  return [alike, differs = d.differs](std::int64_t layer) {
    nn::RotaryAttentionOptions own = alike;
    if (differs) differs(layer, own);
    return own;
  };
}

}  // namespace

DecoderForm form_of(const DecoderDescription& d) {
  nn::need_positive(d.heads, std::string(d.family) + ": heads");
  nn::need_positive(d.feed_forward.hidden, std::string(d.family) + ": hidden");
  if (!std::isfinite(d.logit_cap) || d.logit_cap < 0)
    throw UserError("E0210", std::string(d.family) + ": logit_cap is out of range")
        .saw(std::to_string(d.logit_cap))
        .need("0 or more, finite");
  FeedForward mlp = d.feed_forward;
  mlp.in.weight_init = mlp.out.weight_init = d.init;
  mlp.in.bias_init = mlp.out.bias_init = nn::Init::zeros();
  DecoderForm f;
  f.family = d.family;
  f.tokens = d.names.tokens, f.blocks = d.names.blocks;
  f.norm = d.names.norm, f.head = d.names.head;
  f.attention_norm = d.names.attention_norm, f.attention = d.names.attention;
  f.attention_norm_after = d.names.attention_norm_after;
  f.mlp_norm = d.names.mlp_norm, f.mlp = d.names.mlp, f.mlp_norm_after = d.names.mlp_norm_after;
  f.make_norm = norm_of(d);
  f.make_attention = rotary_attention_part(d.sizes.dim, d.heads, attention_of(d));
  f.make_mlp = feed_forward_part(d.sizes.dim, mlp);
  f.init = d.init;
  f.is_parallel = d.is_parallel;
  f.table_scale = d.table_scale;
  f.embedding_scale = d.embedding_scale;
  f.residual_scale = d.residual_scale;
  f.logit_scale = d.logit_scale;
  f.logit_cap = d.logit_cap;
  return f;
}

}  // namespace aloft::models

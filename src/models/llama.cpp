#include "models/llama.h"

#include <string>

#include "base/error.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/reshape.h"
#include "ops/rotary.h"

namespace aloft::models {
namespace {

nn::LinearOptions projection(const LlamaConfig& c) {
  return {false, nn::Init::normal(c.init_deviation), {}};
}

LlamaConfig checked(const LlamaConfig& c) {
  nn::need_depth(c.layers, "Llama: layers");
  nn::need_positive(c.heads, "Llama: heads");
  nn::need_positive(c.kv_heads, "Llama: kv_heads");
  nn::need_positive(c.vocab, "Llama: vocab");
  if (c.dim % c.heads != 0 || c.dim / c.heads % 2 != 0 || c.heads % c.kv_heads != 0)
    throw UserError("E0211", "Llama: the heads do not fit the width")
        .saw("width " + std::to_string(c.dim) + ", " + std::to_string(c.heads) + " heads, " +
             std::to_string(c.kv_heads) + " for keys and values")
        .need("heads of an even width, a multiple of kv_heads");
  return c;
}

std::vector<std::unique_ptr<LlamaLayer>> make_layers(nn::Module& parent, const LlamaConfig& c) {
  std::vector<std::unique_ptr<LlamaLayer>> layers;
  for (std::int64_t i = 0; i < c.layers; ++i)
    layers.push_back(std::make_unique<LlamaLayer>(parent, "layers." + std::to_string(i), c));
  return layers;
}

}  // namespace

LlamaAttention::LlamaAttention(nn::Module& parent, std::string_view name, const LlamaConfig& c)
    : Layer(parent, name),
      heads_(c.heads),
      kv_heads_(c.kv_heads),
      base_(c.rotary_base),
      q_proj(*this, "q_proj", c.dim, c.dim, projection(c)),
      k_proj(*this, "k_proj", c.dim, c.dim / c.heads * c.kv_heads, projection(c)),
      v_proj(*this, "v_proj", c.dim, c.dim / c.heads * c.kv_heads, projection(c)),
      o_proj(*this, "o_proj", c.dim, c.dim, projection(c)) {}

Tensor LlamaAttention::operator()(Operand x, Operand places) const {
  ModuleScope scope(name(), x.loc, policy());
  const Shape s = x.tensor.shape();
  const Dim width = s[2].max() / heads_;
  const auto heads_of = [&](const Tensor& t, std::int64_t heads) {
    return reshape(t, {s[0], s[1], heads, width});
  };
  const Tensor q = rotary(heads_of(q_proj(x), heads_), places, {base_});
  const Tensor k = rotary(heads_of(k_proj(x), kv_heads_), places, {base_});
  return o_proj(reshape(attention(q, k, heads_of(v_proj(x), kv_heads_)), s));
}

LlamaMlp::LlamaMlp(nn::Module& parent, std::string_view name, const LlamaConfig& c)
    : Layer(parent, name),
      gate_proj(*this, "gate_proj", c.dim, c.hidden, projection(c)),
      up_proj(*this, "up_proj", c.dim, c.hidden, projection(c)),
      down_proj(*this, "down_proj", c.hidden, c.dim, projection(c)) {}

Tensor LlamaMlp::operator()(Operand x) const {
  ModuleScope scope(name(), x.loc, policy());
  return down_proj(silu(gate_proj(x)) * up_proj(x));
}

LlamaLayer::LlamaLayer(nn::Module& parent, std::string_view name, const LlamaConfig& c)
    : Layer(parent, name),
      input_layernorm(*this, "input_layernorm", c.dim, {c.norm_eps}),
      self_attn(*this, "self_attn", c),
      post_attention_layernorm(*this, "post_attention_layernorm", c.dim, {c.norm_eps}),
      mlp(*this, "mlp", c) {}

Tensor LlamaLayer::operator()(Operand x, Operand places) const {
  ModuleScope scope(name(), x.loc, policy());
  const Tensor y = x.tensor + self_attn(input_layernorm(x), places);
  return y + mlp(post_attention_layernorm(y));
}

Llama::Llama(const LlamaConfig& c)
    : config_(checked(c)),
      embed_tokens(*this, "embed_tokens", c.vocab, c.dim, {nn::Init::normal(c.init_deviation)}),
      layers(make_layers(*this, c)),
      norm(*this, "norm", c.dim, {c.norm_eps}),
      lm_head(*this, "lm_head", c.dim, c.vocab, projection(c)) {}

Tensor Llama::operator()(Operand tokens) const {
  ModuleScope scope(name(), tokens.loc, policy());
  const Shape shape = tokens.tensor.shape();
  if (shape.rank() != 2 || !shape[1].is_constant())
    throw UserError("E0213", "Llama cannot read these tokens")
        .saw(tokens.tensor.type().str())
        .need("[B, T] with a constant T");
  const Tensor places = iota(shape[1].max(), DType::I32);
  Tensor x = embed_tokens(tokens);
  for (const auto& layer : layers) x = (*layer)(x, places);
  return lm_head(norm(x));
}

Tensor Llama::loss(Operand tokens, Operand targets) const {
  const Tensor logits = (*this)(tokens);
  ModuleScope scope("loss");
  return cross_entropy(logits, targets);
}

}  // namespace aloft::models

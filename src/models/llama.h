// The Llama family (Touvron et al. 2023): RMS norms, rotary positions, grouped keys and values, a
// gated feed-forward part (Shazeer 2020, SwiGLU), no biases, a head of its own. Parameters have
// Hugging Face's names without "model.": embed_tokens.weight, layers.0.self_attn.q_proj.weight,
// layers.0.mlp.gate_proj.weight, ..., norm.weight, lm_head.weight.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace aloft::models {

struct LlamaConfig {
  std::int64_t layers = 12, heads = 12, kv_heads = 4, dim = 768, hidden = 2048;
  std::int64_t vocab = 32000;
  double rotary_base = 10000, norm_eps = 1e-5, init_deviation = 0.02;
};

class LlamaAttention : public nn::Layer {
 public:
  LlamaAttention(nn::Module& parent, std::string_view name, const LlamaConfig& config);
  Tensor operator()(Operand x, Operand places) const;  // [B, T, dim], i32[T] -> [B, T, dim]

 private:
  std::int64_t heads_, kv_heads_;
  double base_;

 public:
  nn::Linear q_proj, k_proj, v_proj, o_proj;
};

class LlamaMlp : public nn::Layer {
 public:
  LlamaMlp(nn::Module& parent, std::string_view name, const LlamaConfig& config);
  Tensor operator()(Operand x) const;  // down(silu(gate(x)) * up(x))

  nn::Linear gate_proj, up_proj, down_proj;
};

class LlamaLayer : public nn::Layer {
 public:
  LlamaLayer(nn::Module& parent, std::string_view name, const LlamaConfig& config);
  Tensor operator()(Operand x, Operand places) const;

  nn::RMSNorm input_layernorm;
  LlamaAttention self_attn;
  nn::RMSNorm post_attention_layernorm;
  LlamaMlp mlp;
};

class Llama : public nn::Layer {
 public:
  // UserError E0210, E0211: extents that do not fit together.
  explicit Llama(const LlamaConfig& config = {});

  Tensor operator()(Operand tokens) const;  // integers [B, T] -> logits [B, T, vocab]
  // Mean cross-entropy against targets [B, T]; -100 is ignored.
  Tensor loss(Operand tokens, Operand targets) const;

 private:
  LlamaConfig config_;

 public:
  nn::Embedding embed_tokens;
  std::vector<std::unique_ptr<LlamaLayer>> layers;  // layers.0, layers.1, ...
  nn::RMSNorm norm;
  nn::Linear lm_head;
};

}  // namespace aloft::models

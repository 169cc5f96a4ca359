#include "models/gpt2.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"
#include "runtime/buffer.h"

namespace aloft::models {
namespace {

nn::Init weight_init(const Gpt2Config& c) { return nn::Init::normal(c.init_deviation); }
nn::Init residual_init(const Gpt2Config& c) {
  return nn::Init::gpt2_residual(c.layers, c.init_deviation);
}

nn::LinearOptions projection(const Gpt2Config& c, const nn::Init& init) {
  return {c.bias, init, nn::Init::zeros()};
}

nn::AttentionOptions attention_options(const Gpt2Config& c) {
  nn::AttentionOptions o;
  o.bias = c.bias;
  o.weight_init = weight_init(c);
  o.out_init = residual_init(c);
  o.bias_init = nn::Init::zeros();
  o.qkv_name = "c_attn";
  o.out_name = "c_proj";
  return o;
}

Gpt2Config checked(const Gpt2Config& c) {
  nn::need_depth(c.layers, "GPT-2: layers");
  nn::need_positive(c.context, "GPT-2: context");
  nn::need_positive(c.vocab, "GPT-2: vocab");
  if (c.hidden != 0) nn::need_positive(c.hidden, "GPT-2: hidden");
  return c;
}

// In the order of execution, which the order of parameters follows.
std::vector<std::unique_ptr<Gpt2Block>> make_blocks(nn::Module& parent, const Gpt2Config& c) {
  std::vector<std::unique_ptr<Gpt2Block>> blocks;
  for (std::int64_t i = 0; i < c.layers; ++i)
    blocks.push_back(std::make_unique<Gpt2Block>(parent, "h." + std::to_string(i), c));
  return blocks;
}

}  // namespace

void Gpt2Cache::clear() { position->buffer->zero(); }

Gpt2Mlp::Gpt2Mlp(nn::Module& parent, std::string_view name, const Gpt2Config& c)
    : Layer(parent, name),
      c_fc(*this, "c_fc", c.dim, c.feed_forward(), projection(c, weight_init(c))),
      c_proj(*this, "c_proj", c.feed_forward(), c.dim, projection(c, residual_init(c))) {}

Tensor Gpt2Mlp::operator()(Operand x) const {
  ModuleScope scope(name(), x.loc, policy());
  return c_proj(gelu_tanh(c_fc(x)));
}

Gpt2Block::Gpt2Block(nn::Module& parent, std::string_view name, const Gpt2Config& c)
    : Layer(parent, name),
      ln_1(*this, "ln_1", c.dim, {c.norm_eps, c.bias}),
      attn(*this, "attn", c.dim, c.heads, attention_options(c)),
      ln_2(*this, "ln_2", c.dim, {c.norm_eps, c.bias}),
      mlp(*this, "mlp", c),
      drop_attn(*this, "drop_attn", c.dropout),
      drop_mlp(*this, "drop_mlp", c.dropout) {}

Tensor Gpt2Block::forward(Operand x, const nn::KeyValueCache* cache, const Tensor& position) const {
  ModuleScope scope(name(), x.loc, policy());
  const Tensor normed = ln_1(x);
  const Tensor a = cache ? attn.cached(normed, *cache, position) : attn(normed);
  const Tensor y = x + drop_attn(a);
  return y + drop_mlp(mlp(ln_2(y)));
}

Gpt2::Gpt2(const Gpt2Config& config)
    : config_(checked(config)),
      wte(*this, "wte", config.vocab, config.dim, {weight_init(config)}),
      wpe(*this, "wpe", config.context, config.dim, {weight_init(config)}),
      drop(*this, "drop", config.dropout),
      blocks(make_blocks(*this, config)),
      ln_f(*this, "ln_f", config.dim, {config.norm_eps, config.bias}) {
  if (!config.tied)
    lm_head.emplace(*this, "lm_head", config.dim, config.vocab,
                    nn::LinearOptions{false, weight_init(config), {}});
}

Tensor Gpt2::hidden(const Tensor& tokens, const Gpt2Cache* cache) const {
  const Shape shape = tokens.shape();
  const std::int64_t length = shape.rank() == 2 ? shape[1].max() : 0;
  const std::int64_t most = cache ? cache->longest : config_.context;
  if (shape.rank() != 2 || !shape[1].is_constant() || length < 1 || length > most)
    throw UserError("E0213", "GPT-2 cannot read these tokens")
        .saw(tokens.type().str())
        .need("[B, T] with T from 1 to " + std::to_string(most))
        .advice("shorten the sequences, or make the model's context longer");
  Emitter& e = current_emitter();
  const Tensor position = cache ? e.state(cache->position) : Tensor();
  Tensor places = iota(length, DType::I32);
  if (cache) places = places + position;
  Tensor x = drop(wte(tokens) + wpe(places));
  for (std::size_t i = 0; i < blocks.size(); ++i)
    x = blocks[i]->forward(x, cache ? &cache->layers[i] : nullptr, position);
  if (cache)
    e.update(cache->position, position + full({}, static_cast<double>(length), DType::I32));
  return ln_f(x);
}

Tensor Gpt2::head(const Tensor& x) const {
  if (lm_head) return (*lm_head)(x);
  ModuleScope scope("head");
  return linear(x, use(wte.weight));
}

Tensor Gpt2::operator()(Operand tokens) const {
  ModuleScope scope(name(), tokens.loc, policy());
  return head(hidden(tokens.tensor, nullptr));
}

Tensor Gpt2::loss(Operand tokens, Operand targets) const {
  ModuleScope scope(name(), tokens.loc, policy());
  const Tensor logits = head(hidden(tokens.tensor, nullptr));
  ModuleScope loss_scope("loss");
  return cross_entropy(logits, targets);
}

Gpt2Cache Gpt2::make_cache(std::int64_t batch, std::int64_t longest, DType dtype) const {
  nn::need_positive(batch, "GPT-2's cache: batch");
  nn::need_positive(longest, "GPT-2's cache: longest");
  const auto buffer = [](const std::string& name, DType type, const Shape& shape) {
    auto v = std::make_shared<Variable>();
    v->name = name;
    v->type = {type, shape};
    v->cls = StateClass::Buffer;
    v->requires_grad = false;
    nn::allocate(*v);
    return v;
  };
  Gpt2Cache cache;
  cache.longest = std::min(longest, config_.context);
  for (const auto& block : blocks) {
    const nn::MultiHeadAttention& a = block->attn;
    const Shape shape{batch, cache.longest, a.kv_heads(), a.width()};
    cache.layers.push_back({buffer("cache.keys." + block->path(), dtype, shape),
                            buffer("cache.values." + block->path(), dtype, shape)});
  }
  cache.position = buffer("cache.position", DType::I32, {});
  return cache;
}

Tensor Gpt2::decode(Operand tokens, const Gpt2Cache& cache) const {
  ModuleScope scope(name(), tokens.loc, policy());
  return head(hidden(tokens.tensor, &cache));
}

void Gpt2::prefill(Operand tokens, const Gpt2Cache& cache) const {
  ModuleScope scope(name(), tokens.loc, policy());
  hidden(tokens.tensor, &cache);
}

}  // namespace aloft::models

#include "models/decoder.h"

#include <algorithm>

#include "base/error.h"
#include "graph/refuse.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"
#include "runtime/buffer.h"

namespace aloft::models {
namespace {
// Parts of a call that are no modules.
constexpr const char *kTiedHead = "head", *kLoss = "loss";

DecoderSizes checked(const DecoderSizes& s, const DecoderForm& form) {
  const std::string family(form.family);
  nn::need_depth(s.layers, family + ": layers");
  nn::need_positive(s.context, family + ": context");
  nn::need_positive(s.vocab, family + ": vocab");
  return s;
}

std::vector<std::unique_ptr<DecoderBlock>> make_blocks(nn::Module& parent, const DecoderSizes& s,
                                                       const DecoderForm& form) {
  std::vector<std::unique_ptr<DecoderBlock>> blocks;
  for (std::int64_t i = 0; i < s.layers; ++i)
    blocks.push_back(std::make_unique<DecoderBlock>(
        parent, std::string(form.blocks) + "." + std::to_string(i), form, s.dropout));
  return blocks;
}

}  // namespace

void DecodeCache::clear() { position->buffer->zero(); }

DecoderBlock::DecoderBlock(nn::Module& parent, std::string_view name, const DecoderForm& form,
                           double dropout)
    : Layer(parent, name),
      attention_norm_(form.make_norm(*this, form.attention_norm)),
      attention_(form.make_attention(*this, form.attention)),
      mlp_norm_(form.make_norm(*this, form.mlp_norm)),
      mlp_(form.make_mlp(*this, form.mlp)),
      drop_attention_(*this, "drop_attn", dropout),
      drop_mlp_(*this, "drop_mlp", dropout) {}

Tensor DecoderBlock::forward(Operand x, const Tensor& places, const nn::KeyValueCache* cache,
                             const Tensor& position) const {
  return call(x, [&](const Tensor& t) {
    const Tensor normed = (*attention_norm_)(t);
    const Tensor a = cache ? attention_->cached(normed, places, *cache, position)
                           : attention_->whole(normed, places);
    const Tensor y = t + drop_attention_(a);
    return y + drop_mlp_((*mlp_)((*mlp_norm_)(y)));
  });
}

Decoder::Decoder(const DecoderSizes& sizes, const DecoderForm& form)
    : sizes_(checked(sizes, form)),
      family_(form.family),
      tokens_(*this, form.tokens, sizes.vocab, sizes.dim, {form.init}),
      drop_(*this, "drop", sizes.dropout) {
  if (!form.positions.empty())
    positions_.emplace(*this, form.positions, sizes.context, sizes.dim,
                       nn::EmbeddingOptions{form.init});
  blocks_ = make_blocks(*this, sizes, form);
  norm_ = form.make_norm(*this, form.norm);
  if (!sizes.tied)
    head_.emplace(*this, form.head, sizes.dim, sizes.vocab,
                  nn::LinearOptions{false, form.init, {}});
}

Tensor Decoder::hidden(const Tensor& tokens, const DecodeCache* cache) const {
  const Shape shape = tokens.shape();
  const std::int64_t length = shape.rank() == 2 ? shape[1].max() : 0;
  const std::int64_t most = cache ? cache->longest : sizes_.context;
  if (shape.rank() != 2 || !shape[1].is_constant() || length < 1 || length > most)
    refuse(UserError("E0213", family_ + " cannot read these tokens")
               .saw(tokens.type().str())
               .need("[B, T] with T from 1 to " + std::to_string(most))
               .advice("shorten the sequences, or make the model's context longer"),
           tokens);
  Emitter& e = current_emitter();
  const Tensor position = cache ? e.state(cache->position) : Tensor();
  Tensor places = iota(length, DType::I32);
  if (cache) places = places + position;
  Tensor x = drop_(positions_ ? tokens_(tokens) + (*positions_)(places) : tokens_(tokens));
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    x = blocks_[i]->forward(x, places, cache ? &cache->layers[i] : nullptr, position);
  if (cache)
    e.update(cache->position, position + full({}, static_cast<double>(length), DType::I32));
  return (*norm_)(x);
}

std::vector<std::string> Decoder::inner_layers() const {
  return head_ ? std::vector<std::string>{kLoss} : std::vector<std::string>{kTiedHead, kLoss};
}

Tensor Decoder::head(const Tensor& x) const {
  if (head_) return (*head_)(x);
  ModuleScope scope(kTiedHead);
  return linear(x, use(tokens_.weight));
}

Tensor Decoder::operator()(Operand tokens) const {
  return call(tokens, [&](const Tensor& t) { return head(hidden(t, nullptr)); });
}

Tensor Decoder::loss(Operand tokens, Operand targets) const {
  ModuleScope scope(name(), tokens.loc, policy());
  const Tensor logits = head(hidden(tokens.tensor, nullptr));
  ModuleScope loss_scope(kLoss);
  return cross_entropy(logits, targets);
}

DecodeCache Decoder::make_cache(std::int64_t batch, std::int64_t longest, DType dtype) const {
  nn::need_positive(batch, family_ + "'s cache: batch");
  nn::need_positive(longest, family_ + "'s cache: longest");
  const auto buffer = [](const std::string& name, DType type, const Shape& shape) {
    auto v = std::make_shared<Variable>();
    v->name = name;
    v->type = {type, shape};
    v->cls = StateClass::Buffer;
    v->requires_grad = false;
    nn::allocate(*v);
    return v;
  };
  DecodeCache cache;
  cache.longest = std::min(longest, sizes_.context);
  for (const auto& block : blocks_) {
    const DecoderAttention& a = block->attention();
    const Shape shape{batch, cache.longest, a.kv_heads(), a.width()};
    cache.layers.push_back({buffer("cache.keys." + block->path(), dtype, shape),
                            buffer("cache.values." + block->path(), dtype, shape)});
  }
  cache.position = buffer("cache.position", DType::I32, {});
  return cache;
}

Tensor Decoder::decode(Operand tokens, const DecodeCache& cache) const {
  return call(tokens, [&](const Tensor& t) { return head(hidden(t, &cache)); });
}

void Decoder::prefill(Operand tokens, const DecodeCache& cache) const {
  ModuleScope scope(name(), tokens.loc, policy());
  hidden(tokens.tensor, &cache);
}

}  // namespace aloft::models

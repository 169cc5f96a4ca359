#include "models/decoder.h"

#include <algorithm>

#include "base/error.h"
#include "graph/refuse.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "runtime/buffer.h"

namespace aloft::models {
namespace {
// Parts of a call that are no modules.
constexpr const char *kTiedHead = "head", *kLoss = "loss";
constexpr std::int64_t kIgnored = -100;  // the target of a token that is not learnt

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
        parent, std::string(form.blocks) + "." + std::to_string(i), form, i, s.dropout));
  return blocks;
}

std::unique_ptr<DecoderPart> norm_named(nn::Module& parent, const DecoderForm& form,
                                        std::string_view name) {
  return name.empty() ? nullptr : form.make_norm(parent, name);
}
Tensor normed(const std::unique_ptr<DecoderPart>& norm, const Tensor& x) {
  return norm ? (*norm)(x) : x;
}
Tensor scaled(const Tensor& x, double factor) { return factor == 1 ? x : x * factor; }

VariablePtr cache_buffer(const std::string& name, DType type, const Shape& shape) {
  auto v = std::make_shared<Variable>();
  v->name = name;
  v->type = {type, shape};
  v->cls = StateClass::Buffer;
  v->requires_grad = false;
  nn::allocate(*v);
  return v;
}

// Where tokens stand in their sequences, [B, length], of which each begins at its start.
Tensor places_behind(const Tensor& places, const Tensor& starts) {
  const Tensor own = reshape(places, {1, places.dim(0)}) - reshape(starts, {starts.dim(0), 1});
  return maximum(own, scalar_like(own, 0));  // padding stands somewhere
}

}  // namespace

void DecodeCache::clear() { position->buffer->zero(); }
void DecodeCache::rewind(std::int64_t count) {
  position->buffer->write_one(static_cast<std::int32_t>(count));
}

void DecodeCache::allow_padding(std::int64_t batch) {
  starts = cache_buffer("cache.starts", DType::I32, {batch});
  for (nn::KeyValueCache& layer : layers) layer.starts = starts;
}

void DecodeCache::allow_lengths(std::int64_t batch) {
  lengths = cache_buffer("cache.lengths", DType::I32, {batch});
}

DecoderBlock::DecoderBlock(nn::Module& parent, std::string_view name, const DecoderForm& form,
                           std::int64_t layer, double dropout)
    : Layer(parent, name),
      attention_norm_(norm_named(*this, form, form.attention_norm)),
      attention_(form.make_attention(*this, form.attention, layer)),
      attention_norm_after_(norm_named(*this, form, form.attention_norm_after)),
      mlp_norm_(norm_named(*this, form, form.mlp_norm)),
      mlp_(form.make_mlp(*this, form.mlp, layer)),
      mlp_norm_after_(norm_named(*this, form, form.mlp_norm_after)),
      drop_attention_(*this, "drop_attn", dropout),
      drop_mlp_(*this, "drop_mlp", dropout),
      is_parallel_(form.is_parallel),
      residual_scale_(form.residual_scale) {}

Tensor DecoderBlock::forward(Operand x, const Tensor& places, const nn::KeyValueCache* cache,
                             const Tensor& position, const Tensor& lengths) const {
  return call(x, [&](const Tensor& t) {
    const Tensor in = normed(attention_norm_, t);
    const Tensor a = cache ? attention_->cached(in, places, *cache, position, lengths)
                           : attention_->whole(in, places, lengths);
    const auto added = [&](const nn::Dropout& drop, const Tensor& part) {
      return scaled(drop(part), residual_scale_);
    };
    const Tensor y = t + added(drop_attention_, normed(attention_norm_after_, a));
    const Tensor m = (*mlp_)(normed(mlp_norm_, is_parallel_ ? t : y));
    return y + added(drop_mlp_, normed(mlp_norm_after_, m));
  });
}

Decoder::Decoder(const DecoderSizes& sizes, const DecoderForm& form)
    : sizes_(checked(sizes, form)),
      family_(form.family),
      embedding_scale_(form.embedding_scale),
      logit_scale_(form.logit_scale),
      logit_cap_(form.logit_cap),
      tokens_(*this, form.tokens, sizes.vocab, sizes.dim, {form.init, form.table_scale}),
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

std::int64_t Decoder::first_length() const {
  std::int64_t length = 0;
  for (const auto& block : blocks_) length = std::max(length, block->attention().first_length());
  return length;
}

// Of how many tokens each row is: what stands behind the last that is learnt fills it up.
Tensor Decoder::lengths_of(const Tensor& tokens, const Tensor& targets) const {
  const Shape shape = tokens.shape();
  const std::int64_t first = first_length();
  if (first == 0 || shape.rank() != 2 || shape[1].max() <= first || targets.shape() != shape)
    return {};
  const Tensor is_learnt = cast(not_equal(targets, kIgnored), DType::I32);
  return max(is_learnt * (iota(shape[1].max(), DType::I32) + 1), {1});
}

Tensor Decoder::hidden(const Tensor& tokens, const DecodeCache* cache,
                       const Tensor& lengths) const {
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
  if (cache && cache->starts) places = places_behind(places, e.state(cache->starts));
  const Tensor rows = scaled(tokens_(tokens), embedding_scale_);
  Tensor x = drop_(positions_ ? rows + (*positions_)(places) : rows);
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    x = blocks_[i]->forward(x, places, cache ? &cache->layers[i] : nullptr, position,
                            cache && cache->lengths ? e.state(cache->lengths) : lengths);
  if (cache)
    e.update(cache->position, position + full({}, static_cast<double>(length), DType::I32));
  return (*norm_)(x);
}

std::vector<std::string> Decoder::inner_layers() const {
  return head_ ? std::vector<std::string>{kLoss} : std::vector<std::string>{kTiedHead, kLoss};
}

Tensor Decoder::head(const Tensor& x) const {
  const auto projected = [&] {
    if (head_) return (*head_)(x);
    ModuleScope scope(kTiedHead);
    return linear(x, use(tokens_.weight));
  };
  const Tensor logits = scaled(projected(), logit_scale_);
  return logit_cap_ > 0 ? tanh(logits / logit_cap_) * logit_cap_ : logits;
}

Tensor Decoder::operator()(Operand tokens) const {
  return call(tokens, [&](const Tensor& t) { return head(hidden(t, nullptr, {})); });
}

Tensor Decoder::loss(Operand tokens, Operand targets) const {
  ModuleScope scope(name(), tokens.loc, policy());
  const Tensor lengths = lengths_of(tokens.tensor, targets.tensor);
  const Tensor logits = head(hidden(tokens.tensor, nullptr, lengths));
  ModuleScope loss_scope(kLoss);
  return cross_entropy(logits, targets);
}

DecodeCache Decoder::make_cache(std::int64_t batch, std::int64_t longest, DType dtype) const {
  nn::need_positive(batch, family_ + "'s cache: batch");
  nn::need_positive(longest, family_ + "'s cache: longest");
  DecodeCache cache;
  cache.longest = std::min(longest, sizes_.context);
  cache.first_length = first_length();
  for (const auto& block : blocks_) {
    const DecoderAttention& a = block->attention();
    const Shape shape{batch, cache.longest, a.kv_heads(), a.width()};
    cache.layers.push_back({cache_buffer("cache.keys." + block->path(), dtype, shape),
                            cache_buffer("cache.values." + block->path(), dtype, shape)});
  }
  cache.position = cache_buffer("cache.position", DType::I32, {});
  return cache;
}

Tensor Decoder::decode(Operand tokens, const DecodeCache& cache) const {
  return call(tokens, [&](const Tensor& t) { return head(hidden(t, &cache, {})); });
}

void Decoder::prefill(Operand tokens, const DecodeCache& cache) const {
  ModuleScope scope(name(), tokens.loc, policy());
  hidden(tokens.tensor, &cache, {});
}

}  // namespace aloft::models

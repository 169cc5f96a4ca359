#include "models/encoder.h"

#include <cmath>

#include "base/error.h"
#include "graph/refuse.h"
#include "models/decoder_parts.h"
#include "nn/head_width.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/cumsum.h"
#include "ops/extents.h"
#include "ops/matmul.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace aloft::models {
namespace {

// The score of what is not seen. f16 holds it, and behind a softmax it is a weight of 0 beside any
// score that a model has.
constexpr double kUnseen = -3e4;

nn::LinearOptions linear(const EncoderDescription& d) { return {true, d.init, nn::Init::zeros()}; }

EncoderDescription checked(const EncoderDescription& d) {
  const std::string family(d.family);
  nn::need_depth(d.layers, family + ": layers");
  nn::need_positive(d.hidden, family + ": hidden");
  nn::need_positive(d.context, family + ": context");
  nn::need_positive(d.vocab, family + ": vocab");
  nn::need_positive(d.token_types, family + ": token_types");
  nn::need_positive(d.classes, family + ": classes");
  if (d.padding && *d.padding < 0)
    throw UserError("E0210", family + ": padding is out of range")
        .saw(std::to_string(*d.padding))
        .need("a token's number");
  return d;
}

std::int64_t rows_of_positions(const EncoderDescription& d) {
  return d.padding ? extent_sum(d.context, extent_sum(*d.padding, 1)) : d.context;
}

}  // namespace

EncoderBlock::EncoderBlock(nn::Module& parent, std::string_view name, const EncoderDescription& d)
    : Layer(parent, name),
      heads_(d.heads),
      width_(nn::head_width(d.dim, d.heads, 0, "EncoderBlock '" + path() + "'")),
      activation_(decoder_activation(d.activation)),
      query_(*this, "attention.self.query", d.dim, d.dim, linear(d)),
      key_(*this, "attention.self.key", d.dim, d.dim, linear(d)),
      value_(*this, "attention.self.value", d.dim, d.dim, linear(d)),
      drop_weights_(*this, "attention.self.dropout", d.attention_dropout),
      attended_(*this, "attention.output.dense", d.dim, d.dim, linear(d)),
      drop_attended_(*this, "attention.output.dropout", d.dropout),
      attention_norm_(*this, "attention.output.LayerNorm", d.dim, {d.norm_eps, true}),
      in_(*this, "intermediate.dense", d.dim, d.hidden, linear(d)),
      out_(*this, "output.dense", d.hidden, d.dim, linear(d)),
      drop_out_(*this, "output.dropout", d.dropout),
      norm_(*this, "output.LayerNorm", d.dim, {d.norm_eps, true}) {}

Tensor EncoderBlock::attention(const Tensor& x, const Tensor& seen) const {
  const Shape s = x.shape();
  const auto heads_first = [&](const Tensor& t) {  // [B, T, dim] -> [B, heads, T, width]
    return transpose(reshape(t, {s[0], s[1], heads_, width_}), {0, 2, 1, 3});
  };
  const Tensor scores = matmul(heads_first(query_(x)), heads_first(key_(x)), false, true) *
                        (1 / std::sqrt(static_cast<double>(width_)));
  const Tensor weights = softmax(where(seen, scores, scalar_like(scores, kUnseen)));
  const Tensor mixed = matmul(drop_weights_(weights), heads_first(value_(x)));
  return reshape(transpose(mixed, {0, 2, 1, 3}), {s[0], s[1], heads_ * width_});
}

Tensor EncoderBlock::forward(Operand x, const Tensor& seen) const {
  return call(x, [&](const Tensor& t) {
    const Tensor y = attention_norm_(t + drop_attended_(attended_(attention(t, seen))));
    return norm_(y + drop_out_(out_(activation_(in_(y)))));
  });
}

Encoder::Encoder(const EncoderDescription& d)
    : d_(checked(d)),
      tokens_(*this, "embeddings.word_embeddings", d.vocab, d.dim, {d.init}),
      positions_(*this, "embeddings.position_embeddings", rows_of_positions(d), d.dim, {d.init}),
      types_(*this, "embeddings.token_type_embeddings", d.token_types, d.dim, {d.init}),
      norm_(*this, "embeddings.LayerNorm", d.dim, {d.norm_eps, true}),
      drop_(*this, "embeddings.dropout", d.dropout),
      drop_head_(*this, "dropout", d.head_dropout) {
  for (std::int64_t i = 0; i < d.layers; ++i)
    blocks_.push_back(
        std::make_unique<EncoderBlock>(*this, "encoder.layer." + std::to_string(i), d));
  if (d.head == EncoderDescription::Head::Pooled) {
    pooler_.emplace(*this, "pooler.dense", d.dim, d.dim, linear(d));
    classifier_.emplace(*this, "classifier", d.dim, d.classes, linear(d));
  } else {
    dense_.emplace(*this, "classifier.dense", d.dim, d.dim, linear(d));
    classifier_.emplace(*this, "classifier.out_proj", d.dim, d.classes, linear(d));
  }
}

Tensor Encoder::positions_of(const Tensor& tokens) const {
  if (!d_.padding) return iota(tokens.shape()[1].max(), DType::I32);
  const Tensor counts = cast(not_equal(tokens, *d_.padding), DType::I32);
  return cumsum(counts) * counts + *d_.padding;
}

Tensor Encoder::head(const Tensor& first) const {
  if (pooler_) return (*classifier_)(drop_head_(tanh((*pooler_)(first))));
  return (*classifier_)(drop_head_(tanh((*dense_)(drop_head_(first)))));
}

Tensor Encoder::classify(Operand tokens, Operand types, Operand lengths) const {
  const Shape shape = tokens.tensor.shape();
  const std::int64_t length = shape.rank() == 2 ? shape[1].max() : 0;
  if (shape.rank() != 2 || !shape[1].is_constant() || length < 1 || length > d_.context ||
      types.tensor.shape() != shape || lengths.tensor.shape() != Shape{shape[0]})
    refuse(UserError("E0213", std::string(d_.family) + " cannot read these tokens")
               .saw(tokens.tensor.type().str() + ", types " + types.tensor.type().str() +
                    ", lengths " + lengths.tensor.type().str())
               .need("tokens and types [B, T] with T from 1 to " + std::to_string(d_.context) +
                     ", lengths [B]")
               .advice("shorten the texts"),
           tokens.tensor);
  return call(tokens, [&](const Tensor& ids) {
    const Tensor places = reshape(iota(length, DType::I32), {1, 1, 1, length});
    const Tensor seen =
        less(places, reshape(cast(lengths.tensor, DType::I32), {shape[0], 1, 1, 1}));
    Tensor x = tokens_(ids) + types_(types) + positions_(positions_of(ids));
    x = drop_(norm_(x));
    for (const auto& block : blocks_) x = block->forward(x, seen);
    return head(reshape(slice(x, 1, 0, 1), {shape[0], d_.dim}));
  });
}

}  // namespace aloft::models

#include "models/decoder_parts.h"

#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/extents.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace aloft::models {
namespace {

// A layer of [B, T, dim] as a part.
template <class Layer>
class PartOf : public DecoderPart {
 public:
  template <class... Args>
  explicit PartOf(Args&&... arguments) : layer_(std::forward<Args>(arguments)...) {}
  Tensor operator()(Operand x) const override { return layer_(x); }

 private:
  Layer layer_;
};

class FusedAttention : public DecoderAttention {
 public:
  FusedAttention(nn::Module& parent, std::string_view name, std::int64_t dim, std::int64_t heads,
                 const nn::AttentionOptions& o)
      : attention_(parent, name, dim, heads, o) {}
  Tensor whole(Operand x, const Tensor&, const Tensor&) const override { return attention_(x); }
  Tensor cached(Operand x, const Tensor&, const nn::KeyValueCache& cache, const Tensor& position,
                const Tensor&) const override {
    return attention_.cached(x, cache, position);
  }
  std::int64_t kv_heads() const override { return attention_.kv_heads(); }
  std::int64_t width() const override { return attention_.width(); }

 private:
  nn::MultiHeadAttention attention_;
};

class RotaryPart : public DecoderAttention {
 public:
  RotaryPart(nn::Module& parent, std::string_view name, std::int64_t dim, std::int64_t heads,
             const nn::RotaryAttentionOptions& o)
      : attention_(parent, name, dim, heads, o) {}
  Tensor whole(Operand x, const Tensor& places, const Tensor& lengths) const override {
    return attention_(x, places, lengths);
  }
  Tensor cached(Operand x, const Tensor& places, const nn::KeyValueCache& cache,
                const Tensor& position, const Tensor& lengths) const override {
    return attention_.cached(x, places, cache, position, lengths);
  }
  std::int64_t first_length() const override { return attention_.first_length(); }
  std::int64_t kv_heads() const override { return attention_.kv_heads(); }
  std::int64_t width() const override { return attention_.width(); }

 private:
  nn::RotaryAttention attention_;
};

struct Activation {
  std::string_view name;
  Tensor (*of)(Operand);
};
const Activation kActivations[] = {{"silu", silu},
                                   {"swish", silu},
                                   {"gelu", gelu},
                                   {"gelu_new", gelu_tanh},
                                   {"gelu_pytorch_tanh", gelu_tanh},
                                   {"relu", relu},
                                   {"relu2", [](Operand x) { return square(relu(x)); }}};

class FeedForwardLayer : public nn::Layer {
 public:
  FeedForwardLayer(nn::Module& parent, std::string_view name, std::int64_t dim,
                   const FeedForward& f)
      : Layer(parent, name),
        kind_(f.kind),
        hidden_(f.hidden),
        activation_(decoder_activation(f.activation)),
        in_(*this, f.in_name, dim, is_joined() ? extent_product(2, f.hidden) : f.hidden, f.in) {
    if (kind_ == FeedForward::Kind::Gated) up_.emplace(*this, f.up_name, dim, f.hidden, f.in);
    out_.emplace(*this, f.out_name, f.hidden, dim, f.out);
  }
  std::string_view kind() const override { return "MLP"; }
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) {
      const Tensor in = in_(t);
      if (up_) return (*out_)(activation_(in) * (*up_)(t));
      if (!is_joined()) return (*out_)(activation_(in));
      return (*out_)(activation_(slice(in, -1, 0, hidden_)) * slice(in, -1, hidden_));
    });
  }

 private:
  bool is_joined() const { return kind_ == FeedForward::Kind::Joined; }

  FeedForward::Kind kind_;
  std::int64_t hidden_;
  Tensor (*activation_)(Operand);
  nn::Linear in_;
  std::optional<nn::Linear> up_, out_;
};

// Makes a Part of these arguments, behind parent and name.
template <class Base, class Part, class... Args>
DecoderForm::Make<Base> maker(Args... arguments) {
  return [=](nn::Module& parent, std::string_view name) {
    return std::make_unique<Part>(parent, name, arguments...);
  };
}
// The same, alike in all blocks.
template <class Base, class Part, class... Args>
DecoderForm::MakeInBlock<Base> block_maker(Args... arguments) {
  return [=](nn::Module& parent, std::string_view name, std::int64_t) {
    return std::make_unique<Part>(parent, name, arguments...);
  };
}

}  // namespace

std::vector<std::string_view> decoder_activations() {
  std::vector<std::string_view> names;
  for (const Activation& a : kActivations) names.push_back(a.name);
  return names;
}

Tensor (*decoder_activation(std::string_view name))(Operand) {
  for (const Activation& a : kActivations)
    if (a.name == name) return a.of;
  std::vector<std::string> names;
  for (const Activation& a : kActivations) names.emplace_back(a.name);
  throw UserError("E0210", "there is no activation of that name")
      .saw(in_quotes(name))
      .need("one of " + join(names, ", "));
}

DecoderForm::Make<DecoderPart> layer_norm_part(std::int64_t dim, const nn::LayerNormOptions& o) {
  return maker<DecoderPart, PartOf<nn::LayerNorm>>(dim, o);
}
DecoderForm::Make<DecoderPart> rms_norm_part(std::int64_t dim, const nn::RMSNormOptions& o) {
  return maker<DecoderPart, PartOf<nn::RMSNorm>>(dim, o);
}
DecoderForm::MakeInBlock<DecoderAttention> fused_attention_part(std::int64_t dim,
                                                                std::int64_t heads,
                                                                const nn::AttentionOptions& o) {
  return block_maker<DecoderAttention, FusedAttention>(dim, heads, o);
}
DecoderForm::MakeInBlock<DecoderAttention> rotary_attention_part(std::int64_t dim,
                                                                 std::int64_t heads,
                                                                 const RotaryOptionsOf& options) {
  return [=](nn::Module& parent, std::string_view name, std::int64_t layer) {
    return std::make_unique<RotaryPart>(parent, name, dim, heads, options(layer));
  };
}
DecoderForm::MakeInBlock<DecoderPart> feed_forward_part(std::int64_t dim, const FeedForward& f) {
  return block_maker<DecoderPart, PartOf<FeedForwardLayer>>(dim, f);
}

}  // namespace aloft::models

#include "models/decoder_parts.h"

#include "ops/activation.h"
#include "ops/binary.h"

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
  Tensor whole(Operand x, const Tensor&) const override { return attention_(x); }
  Tensor cached(Operand x, const Tensor&, const nn::KeyValueCache& cache,
                const Tensor& position) const override {
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
  Tensor whole(Operand x, const Tensor& places) const override { return attention_(x, places); }
  Tensor cached(Operand x, const Tensor& places, const nn::KeyValueCache& cache,
                const Tensor& position) const override {
    return attention_.cached(x, places, cache, position);
  }
  std::int64_t kv_heads() const override { return attention_.kv_heads(); }
  std::int64_t width() const override { return attention_.width(); }

 private:
  nn::RotaryAttention attention_;
};

class GeluMlp : public nn::Layer {
 public:
  GeluMlp(nn::Module& parent, std::string_view name, std::int64_t dim, std::int64_t hidden,
          const nn::LinearOptions& in, const nn::LinearOptions& out)
      : Layer(parent, name),
        c_fc_(*this, "c_fc", dim, hidden, in),
        c_proj_(*this, "c_proj", hidden, dim, out) {}
  std::string_view kind() const override { return "MLP"; }
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) { return c_proj_(gelu_tanh(c_fc_(t))); });
  }

 private:
  nn::Linear c_fc_, c_proj_;
};

class SwigluMlp : public nn::Layer {
 public:
  SwigluMlp(nn::Module& parent, std::string_view name, std::int64_t dim, std::int64_t hidden,
            const nn::LinearOptions& o)
      : Layer(parent, name),
        gate_proj_(*this, "gate_proj", dim, hidden, o),
        up_proj_(*this, "up_proj", dim, hidden, o),
        down_proj_(*this, "down_proj", hidden, dim, o) {}
  std::string_view kind() const override { return "MLP"; }
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) { return down_proj_(silu(gate_proj_(t)) * up_proj_(t)); });
  }

 private:
  nn::Linear gate_proj_, up_proj_, down_proj_;
};

// Makes a Part of these arguments, behind parent and name.
template <class Base, class Part, class... Args>
DecoderForm::Make<Base> maker(Args... arguments) {
  return [=](nn::Module& parent, std::string_view name) {
    return std::make_unique<Part>(parent, name, arguments...);
  };
}

}  // namespace

DecoderForm::Make<DecoderPart> layer_norm_part(std::int64_t dim, const nn::LayerNormOptions& o) {
  return maker<DecoderPart, PartOf<nn::LayerNorm>>(dim, o);
}
DecoderForm::Make<DecoderPart> rms_norm_part(std::int64_t dim, const nn::RMSNormOptions& o) {
  return maker<DecoderPart, PartOf<nn::RMSNorm>>(dim, o);
}
DecoderForm::Make<DecoderAttention> fused_attention_part(std::int64_t dim, std::int64_t heads,
                                                         const nn::AttentionOptions& o) {
  return maker<DecoderAttention, FusedAttention>(dim, heads, o);
}
DecoderForm::Make<DecoderAttention> rotary_attention_part(std::int64_t dim, std::int64_t heads,
                                                          const nn::RotaryAttentionOptions& o) {
  return maker<DecoderAttention, RotaryPart>(dim, heads, o);
}
DecoderForm::Make<DecoderPart> gelu_mlp_part(std::int64_t dim, std::int64_t hidden,
                                             const nn::LinearOptions& in,
                                             const nn::LinearOptions& out) {
  return maker<DecoderPart, PartOf<GeluMlp>>(dim, hidden, in, out);
}
DecoderForm::Make<DecoderPart> swiglu_part(std::int64_t dim, std::int64_t hidden,
                                           const nn::LinearOptions& o) {
  return maker<DecoderPart, PartOf<SwigluMlp>>(dim, hidden, o);
}

}  // namespace aloft::models

// The StarCoder 2 family (Lozhkov et al. 2024): rotary positions and grouped keys and values as
// Llama's, layer norms, a plain feed-forward part with a GELU, biases everywhere.
#pragma once

#include "models/rotary_decoder.h"
#include "ops/extents.h"

namespace aloft::models {

// Where a StarCoder 2 begins: the sizes of StarCoder 2 3B.
struct Starcoder2Defaults : RotaryDefaults {
  static constexpr std::int64_t layers = 30, heads = 24, kv_heads = 2, dim = 3072, hidden = 12288,
                                vocab = 49152, context = 16384, window = 4096;
  static constexpr double rotary_base = 999999.4420358813, norm_eps = 1e-5;
  static constexpr bool tied = true, attention_bias = true;
  static constexpr std::string_view activation = "gelu_pytorch_tanh";
  // What transformers assumes where config.json does not say.
  static constexpr std::int64_t published_layers = 30, published_heads = 24, published_kv_heads = 2,
                                published_dim = 3072, published_hidden = 12288,
                                published_context = 4096, published_vocab = 49152;
  static constexpr double published_norm_eps = 1e-5;
  static constexpr bool published_tied = true;
  static constexpr std::string_view published_activation = activation, eps_key = "norm_epsilon";
  // Keys there under which dropout is written.
  static std::vector<std::string_view> dropout_keys() {
    return {"residual_dropout", "embedding_dropout"};
  }
  // The feed-forward part's width where nobody says it.
  static std::int64_t hidden_of(std::int64_t dim) { return extent_product(4, dim); }
  // Settings of its own, and what a config comes to.
  template <class C>
  static auto own_fields() {
    return FieldList{window_field<C>(0),
                     setting("bias", &C::attention_bias, {}, "biases in projections",
                             {.published = "use_bias", .assumed = true})};
  }
  static DecoderDescription description(const RotaryConfig<Starcoder2Defaults>& c);
};
// The settings of a Starcoder2.
using Starcoder2Config = RotaryConfig<Starcoder2Defaults>;
// A Starcoder2.
class Starcoder2 : public RotaryDecoder<Starcoder2Defaults> {
 public:
  using RotaryDecoder::RotaryDecoder;  // of its config
};

}  // namespace aloft::models

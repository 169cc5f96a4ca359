#include "nn/rotary_attention.h"

#include "base/error.h"
#include "nn/head_width.h"
#include "ops/attention.h"
#include "ops/extents.h"
#include "ops/reshape.h"
#include "ops/rotary.h"

namespace aloft::nn {
namespace {

std::int64_t even_width(std::int64_t dim, std::int64_t heads, std::int64_t kv_heads,
                        const std::string& what) {
  const std::int64_t width = head_width(dim, heads, kv_heads, what);
  if (width % 2 != 0)
    throw UserError("E0211", what + ": a head has an odd number of features")
        .saw(std::to_string(width) + ": width " + std::to_string(dim) + " in " +
             std::to_string(heads) + " heads")
        .need("an even number: rotary positions turn pairs");
  return width;
}

}  // namespace

RotaryAttention::RotaryAttention(Module& parent, std::string_view name, std::int64_t dim,
                                 std::int64_t heads, const RotaryAttentionOptions& o)
    : Layer(parent, name),
      heads_(heads),
      kv_heads_(o.kv_heads > 0 ? o.kv_heads : heads),
      width_(even_width(dim, heads, o.kv_heads, "RotaryAttention '" + path() + "'")),
      base_(o.base),
      q_proj(*this, "q_proj", dim, dim, {o.qkv_bias, o.weight_init, Init::zeros()}),
      k_proj(*this, "k_proj", dim, extent_product(width_, kv_heads_),
             {o.qkv_bias, o.weight_init, Init::zeros()}),
      v_proj(*this, "v_proj", dim, extent_product(width_, kv_heads_),
             {o.qkv_bias, o.weight_init, Init::zeros()}),
      o_proj(*this, "o_proj", dim, dim, {false, o.weight_init, {}}) {}

Tensor RotaryAttention::heads_of(const Tensor& x, std::int64_t heads) const {
  const Shape s = x.shape();
  return reshape(x, {s[0], s[1], heads, width_});
}

Tensor RotaryAttention::operator()(Operand x, Operand places) const {
  return call(x, [&](const Tensor& t) {
    const Tensor q = rotary(heads_of(q_proj(t), heads_), places, {base_});
    const Tensor k = rotary(heads_of(k_proj(t), kv_heads_), places, {base_});
    const Tensor v = heads_of(v_proj(t), kv_heads_);
    return o_proj(reshape(attention(q, k, v), t.shape()));
  });
}

Tensor RotaryAttention::cached(Operand x, Operand places, const KeyValueCache& cache,
                               const Tensor& position) const {
  return call(x, [&](const Tensor& t) {
    const Tensor q = rotary(heads_of(q_proj(t), heads_), places, {base_});
    const Tensor k = rotary(heads_of(k_proj(t), kv_heads_), places, {base_});
    const Tensor v = heads_of(v_proj(t), kv_heads_);
    return o_proj(reshape(attend_cached(q, k, v, cache, position), t.shape()));
  });
}

}  // namespace aloft::nn

#include "nn/attention.h"

#include "nn/head_width.h"
#include "ops/attention.h"
#include "ops/attention_qkv.h"
#include "ops/cache_write.h"
#include "ops/cast.h"
#include "ops/extents.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace aloft::nn {
Tensor attend_cached(const Tensor& q, const Tensor& keys, const Tensor& values,
                     const KeyValueCache& cache, const Tensor& position,
                     const AttentionCachedAttrs& attrs) {
  Emitter& e = current_emitter();
  const auto append = [&](const VariablePtr& variable, const Tensor& rows) {
    Tensor all = cache_write(e.state(variable), cast(rows, variable->type.dtype), position);
    e.update(variable, all);
    return all;
  };
  const Tensor all_keys = append(cache.keys, keys);
  const Tensor all_values = append(cache.values, values);
  const Tensor queries = cast(q, all_keys.dtype());
  const Tensor o = cache.starts ? attention_cached(queries, all_keys, all_values, position,
                                                   e.state(cache.starts), attrs)
                                : attention_cached(queries, all_keys, all_values, position, attrs);
  return cast(o, q.dtype());
}

MultiHeadAttention::MultiHeadAttention(Module& parent, std::string_view name, std::int64_t dim,
                                       std::int64_t heads, const AttentionOptions& options)
    : Layer(parent, name),
      heads_(heads),
      kv_heads_(options.kv_heads > 0 ? options.kv_heads : heads),
      width_(head_width(dim, heads, options.kv_heads, "MultiHeadAttention '" + path() + "'")),
      causal_(options.causal),
      qkv(*this, options.qkv_name, dim,
          extent_product(extent_sum(heads_, extent_product(2, kv_heads_)), width_),
          {options.bias, options.weight_init, options.bias_init}),
      proj(*this, options.out_name, dim, dim,
           {options.bias, options.out_init ? options.out_init : options.weight_init,
            options.bias_init}) {}

Tensor MultiHeadAttention::operator()(Operand x) const {
  return call(x, [&](const Tensor& t) {
    return proj(attention_qkv(qkv(t), {heads_, kv_heads_, causal_, 0}));
  });
}

Tensor MultiHeadAttention::cached(Operand x, const KeyValueCache& cache,
                                  const Tensor& position) const {
  return call(x, [&](const Tensor& t) {
    const Shape s = t.shape();
    const Tensor packed = reshape(qkv(t), {s[0], s[1], heads_ + 2 * kv_heads_, width_});
    const auto heads_from = [&](std::int64_t first, std::int64_t count) {
      return slice(packed, 2, first, first + count);
    };
    const Tensor q = heads_from(0, heads_);
    const Tensor keys = heads_from(heads_, kv_heads_);
    const Tensor values = heads_from(heads_ + kv_heads_, kv_heads_);
    return proj(
        reshape(attend_cached(q, keys, values, cache, position), {s[0], s[1], heads_ * width_}));
  });
}

}  // namespace aloft::nn

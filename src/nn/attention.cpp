#include "nn/attention.h"

#include "base/error.h"
#include "ops/attention.h"
#include "ops/attention_qkv.h"
#include "ops/cache_write.h"
#include "ops/cast.h"
#include "ops/extents.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace aloft::nn {
namespace {

std::int64_t width_of(std::int64_t dim, std::int64_t heads, std::int64_t kv_heads,
                      const std::string& what) {
  need_positive(dim, what + ": dim");
  need_positive(heads, what + ": heads");
  if (kv_heads < 0)
    throw UserError("E0210", what + ": kv_heads is out of range")
        .saw(std::to_string(kv_heads))
        .need("1 or more, or 0: as many as heads");
  if (dim % heads != 0)
    throw UserError("E0211", what + ": the heads do not divide the width")
        .saw("width " + std::to_string(dim) + " in " + std::to_string(heads) + " heads")
        .need("a width that is a multiple of the heads");
  if (kv_heads > 0 && heads % kv_heads != 0)
    throw UserError("E0211", what + ": kv_heads does not divide heads")
        .saw(std::to_string(kv_heads) + " and " + std::to_string(heads))
        .need("heads that are a multiple of kv_heads");
  return dim / heads;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(Module& parent, std::string_view name, std::int64_t dim,
                                       std::int64_t heads, const AttentionOptions& options)
    : Layer(parent, name),
      heads_(heads),
      kv_heads_(options.kv_heads > 0 ? options.kv_heads : heads),
      width_(width_of(dim, heads, options.kv_heads, "MultiHeadAttention '" + path() + "'")),
      causal_(options.causal),
      qkv(*this, options.qkv_name, dim,
          extent_product(extent_sum(heads_, extent_product(2, kv_heads_)), width_),
          {options.bias, options.weight_init, options.bias_init}),
      proj(*this, options.out_name, dim, dim,
           {options.bias, options.out_init ? options.out_init : options.weight_init,
            options.bias_init}) {}

Tensor MultiHeadAttention::operator()(Operand x) const {
  ModuleScope scope(name(), x.loc, policy());
  return proj(attention_qkv(qkv(x), {heads_, kv_heads_, causal_, 0}));
}

Tensor MultiHeadAttention::cached(Operand x, const KeyValueCache& cache,
                                  const Tensor& position) const {
  ModuleScope scope(name(), x.loc, policy());
  Emitter& e = current_emitter();
  const Shape s = x.tensor.shape();
  const Tensor packed = reshape(qkv(x), {s[0], s[1], heads_ + 2 * kv_heads_, width_});
  const auto append = [&](const VariablePtr& variable, std::int64_t from) {
    const Tensor rows = cast(slice(packed, 2, from, from + kv_heads_), variable->type.dtype);
    Tensor all = cache_write(e.state(variable), rows, position);
    e.update(variable, all);
    return all;
  };
  const Tensor keys = append(cache.keys, heads_);
  const Tensor values = append(cache.values, heads_ + kv_heads_);
  // The cache decides the type in which it is read: it is never converted as a whole.
  const Tensor q = cast(slice(packed, 2, 0, heads_), keys.dtype());
  const Tensor o = attention_cached(q, keys, values, position);
  return proj(reshape(cast(o, packed.dtype()), {s[0], s[1], heads_ * width_}));
}

}  // namespace aloft::nn

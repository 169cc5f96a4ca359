#include "nn/rotary_attention.h"

#include "base/error.h"
#include "nn/head_width.h"
#include "ops/attention.h"
#include "ops/extents.h"
#include "ops/reshape.h"
#include "ops/rotary.h"
#include "ops/slice.h"
#include "types/rotary_scaling.h"

namespace aloft::nn {
namespace {

using Options = RotaryAttentionOptions;

void need_even(std::int64_t turned, const std::string& saw, const std::string& what) {
  if (turned % 2 == 0) return;
  throw UserError("E0211", what + ": a head has an odd number of features")
      .saw(saw)
      .need("an even number: rotary positions turn pairs");
}

std::int64_t checked_width(std::int64_t dim, std::int64_t heads, const Options& o,
                           const std::string& what) {
  const std::int64_t width = head_width(dim, heads, o.kv_heads, what, o.width);
  if (o.turned < 0 || o.turned > width)
    throw UserError("E0210", what + ": turned is out of range")
        .saw(std::to_string(o.turned))
        .need("0 to " + std::to_string(width) + ", the features of a head");
  if (o.turns && o.turned > 0) need_even(o.turned, std::to_string(o.turned) + " that turn", what);
  if (o.turns && o.turned == 0)
    need_even(width,
              std::to_string(width) + ": width " + std::to_string(dim) + " in " +
                  std::to_string(heads) + " heads",
              what);
  if (o.layout == QkvLayout::ByHeads && o.kv_heads > 0 && o.kv_heads != heads)
    throw UserError("E0211", what + ": heads that lie one by one share no keys")
        .saw(std::to_string(o.kv_heads) + " heads of keys, " + std::to_string(heads) +
             " of queries")
        .need("as many of both");
  return width;
}

}  // namespace

RotaryAttention::RotaryAttention(Module& parent, std::string_view name, std::int64_t dim,
                                 std::int64_t heads, const Options& o)
    : Layer(parent, name),
      options_(o),
      heads_(heads),
      kv_heads_(o.kv_heads > 0 ? o.kv_heads : heads),
      width_(checked_width(dim, heads, o, "RotaryAttention '" + path() + "'")) {
  const LinearOptions in{o.qkv_bias, o.weight_init, Init::zeros()},
      back{o.out_bias, o.weight_init, Init::zeros()};
  const std::int64_t queries = extent_product(width_, heads_),
                     keys = extent_product(width_, kv_heads_);
  if (o.layout == QkvLayout::Apart) {
    q_proj.emplace(*this, "q_proj", dim, queries, in);
    k_proj.emplace(*this, "k_proj", dim, keys, in);
    v_proj.emplace(*this, "v_proj", dim, keys, in);
  } else {
    qkv_proj.emplace(*this, o.qkv_name, dim, extent_sum(queries, extent_product(2, keys)), in);
  }
  o_proj.emplace(*this, o.out_name, queries, dim, back);
  if (o.norm == QueryKeyNorm::None) return;
  const bool whole = o.norm == QueryKeyNorm::Whole;
  q_norm.emplace(*this, "q_norm", whole ? queries : width_, o.norm_options);
  k_norm.emplace(*this, "k_norm", whole ? keys : width_, o.norm_options);
}

RotaryAttention::Projected RotaryAttention::apart(const Tensor& x) const {
  const Shape s = x.shape();
  const bool whole = options_.norm == QueryKeyNorm::Whole;
  const auto heads_of = [&](const Tensor& t, std::int64_t heads) {
    return reshape(t, {s[0], s[1], heads, width_});
  };
  const Tensor q = (*q_proj)(x), k = (*k_proj)(x);
  return {heads_of(whole ? (*q_norm)(q) : q, heads_), heads_of(whole ? (*k_norm)(k) : k, kv_heads_),
          heads_of((*v_proj)(x), kv_heads_)};
}

// From one projection of all three.
RotaryAttention::Projected RotaryAttention::cut(const Tensor& x) const {
  const Shape s = x.shape();
  const Tensor all = (*qkv_proj)(x);
  if (options_.layout == QkvLayout::ByHeads) {
    const Tensor heads = reshape(all, {s[0], s[1], heads_, 3 * width_});
    return {slice(heads, 3, 0, width_), slice(heads, 3, width_, 2 * width_),
            slice(heads, 3, 2 * width_, 3 * width_)};
  }
  const Tensor heads = reshape(all, {s[0], s[1], heads_ + 2 * kv_heads_, width_});
  Projected out{slice(heads, 2, 0, heads_), slice(heads, 2, heads_, heads_ + kv_heads_),
                slice(heads, 2, heads_ + kv_heads_, heads_ + 2 * kv_heads_)};
  if (options_.norm == QueryKeyNorm::Whole) {
    const auto normed = [&](const RMSNorm& norm, const Tensor& t) {
      return reshape(norm(flatten(t, 2, 3)), t.shape());
    };
    out.q = normed(*q_norm, out.q), out.k = normed(*k_norm, out.k);
  }
  return out;
}

std::int64_t RotaryAttention::first_length() const {
  const auto scaling = parse_rotary_scaling(options_.scaling);
  if (!options_.turns || !scaling || scaling->beyond.empty()) return 0;
  return static_cast<std::int64_t>(scaling->original);
}

RotaryAttention::Projected RotaryAttention::projected(const Tensor& x, const Tensor& places,
                                                      const Tensor& lengths) const {
  Projected out = options_.layout == QkvLayout::Apart ? apart(x) : cut(x);
  if (options_.norm == QueryKeyNorm::Heads) out.q = (*q_norm)(out.q), out.k = (*k_norm)(out.k);
  if (!options_.turns) return out;
  const RotaryAttrs turn{options_.base, false, false, options_.turned, options_.scaling};
  const auto turned = [&](const Tensor& t) {
    return lengths.is_defined() ? rotary_by_length(t, places, lengths, turn)
                                : rotary(t, places, turn);
  };
  out.q = turned(out.q), out.k = turned(out.k);
  return out;
}

Tensor RotaryAttention::out(const Tensor& heads) const { return (*o_proj)(flatten(heads, 2, 3)); }

Tensor RotaryAttention::operator()(Operand x, Operand places, const Tensor& lengths) const {
  return call(x, [&](const Tensor& t) {
    const Projected p = projected(t, places.tensor, lengths);
    const AttentionAttrs attrs{true, options_.scale, options_.window, options_.cap};
    return out(attention(p.q, p.k, p.v, attrs));
  });
}

Tensor RotaryAttention::cached(Operand x, Operand places, const KeyValueCache& cache,
                               const Tensor& position, const Tensor& lengths) const {
  return call(x, [&](const Tensor& t) {
    const Projected p = projected(t, places.tensor, lengths);
    const AttentionCachedAttrs attrs{options_.scale, options_.window, options_.cap};
    return out(attend_cached(p.q, p.k, p.v, cache, position, attrs));
  });
}

}  // namespace aloft::nn

#include "ops/attention_inside.h"

#include <cmath>
#include <limits>

#include "ops/attention_qkv.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/kept_type.h"
#include "ops/matmul.h"
#include "ops/op.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace aloft {
namespace {

const Name kAttention = "attention", kAttentionQkv = "attention_qkv";

// q [B, T, H, D], k [B, S, KV, D]. The queries of the heads that share keys lie one behind the
// other, so that no key is repeated.
AttentionInside inside(const AttentionAttrs& a, const Tensor& q, const Tensor& k) {
  const DType wide = statistics_type(q.dtype());
  const Shape qs = q.shape(), ks = k.shape();
  const std::int64_t heads = qs[2].max(), kv = ks[2].max(), width = qs[3].max();
  const Tensor rows =
      reshape(transpose(cast(q, wide), {0, 2, 1, 3}), {qs[0], kv, heads / kv * qs[1].max(), qs[3]});
  const Tensor keys = transpose(cast(k, wide), {0, 2, 1, 3});
  const double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(width));
  Tensor s = reshape(matmul(rows, keys, false, true), {qs[0], qs[2], qs[1], ks[1]}) * scale;
  if (a.cap > 0) s = tanh(s / a.cap) * a.cap;
  if (const Tensor seen = seen_keys(a, q, k); seen.is_defined())
    s = where(seen, s, scalar_like(s, -std::numeric_limits<double>::infinity()));
  return {s, softmax(s)};
}

}  // namespace

bool has_attention_inside(Name op) { return op == kAttention || op == kAttentionQkv; }

AttentionInside inside_attention(Name op, const Attrs& attrs, std::span<const Tensor> in) {
  if (op == kAttention) return inside(from_attrs<AttentionAttrs>(attrs), in[0], in[1]);
  const auto a = from_attrs<AttentionQkvAttrs>(attrs);
  const Shape s = in[0].shape();
  const Tensor heads = reshape(in[0], {s[0], s[1], a.all_heads(), s[2].max() / a.all_heads()});
  return inside({a.causal, a.scale}, slice(heads, 2, 0, a.heads),
                slice(heads, 2, a.heads, a.heads + a.kv()));
}

}  // namespace aloft

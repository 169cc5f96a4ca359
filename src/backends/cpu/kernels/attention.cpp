// attention, attention_grad, attention_cached: separate operands with heads side by side.
#include "ops/attention.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/attention/attention_decode.h"
#include "backends/cpu/attention/attention_prepared.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {
namespace {

// [B, length, heads, width], dense.
HeadsLayout dense(const Shape& s) {
  const std::int64_t row = s[2].max() * s[3].max();
  return {0, s[1].max() * row, row};
}

AttentionShape shape_of(const CallSpec& call, const AttentionAttrs& a) {
  const Shape &q = call.in[0].shape, &k = call.in[1].shape;
  AttentionShape s;
  s.dtype = call.in[0].dtype;
  s.queries = q[1].max();
  s.keys = k[1].max();
  s.heads = q[2].max();
  s.kv_heads = k[2].max();
  s.width = q[3].max();
  s.causal = a.causal;
  s.scale = attention_scale(a.scale, s.width);
  s.window = a.window < s.keys ? a.window : 0;
  s.cap = static_cast<float>(a.cap);
  s.q = s.o = dense(q);
  s.k = s.v = dense(k);
  s.threads = call.threads;
  return s;
}

AttentionShape shape_of(const CallSpec& call) {
  return shape_of(call, from_attrs<AttentionAttrs>(call.attrs));
}
AttentionShape cached_shape_of(const CallSpec& call) {
  const auto a = from_attrs<AttentionCachedAttrs>(call.attrs);
  return shape_of(call, {true, a.scale, a.window, a.cap});
}

// How much of the cache counts is only known now; the rest of it is never read.
class Cached : public Prepared {
 public:
  explicit Cached(const CallSpec& call)
      : shape_(cached_shape_of(call)),
        batch_(extent_of(call.in[0].shape[0], call)),
        has_starts_(call.in.size() > 4) {}
  std::size_t scratch_bytes() const override {
    return few() ? attention_decode_scratch(shape_) : attention_forward_scratch(shape_);
  }
  void run(const RunArgs& args) const override {
    const std::int64_t length = *static_cast<const std::int32_t*>(args.in[3]);
    const std::int64_t keys = std::clamp(length + shape_.queries, shape_.queries, shape_.keys);
    const std::int64_t batch = batch_.at(args.symbols);
    if (!has_starts_) return attend(shape_, {batch, keys}, args);
    const auto* starts = static_cast<const std::int32_t*>(args.in[4]);
    for (std::int64_t b = 0; b < batch; ++b)
      attend_from(b, std::clamp<std::int64_t>(starts[b], 0, keys), keys, args);
  }

 private:
  bool few() const { return shape_.queries <= kFewQueries; }

  void attend(const AttentionShape& shape, const AttentionExtents& actual,
              const RunArgs& args) const {
    const AttentionForward operands{args.in[0], args.in[1], args.in[2], args.out[0], nullptr};
    (few() ? run_attention_decode : run_attention_forward)(shape, actual, operands, args.scratch);
  }

  // One sequence, as one without padding that lies behind it.
  void attend_from(std::int64_t b, std::int64_t start, std::int64_t keys,
                   const RunArgs& args) const {
    AttentionShape s = shape_;
    const std::int64_t padding = std::clamp<std::int64_t>(start - (keys - s.queries), 0, s.queries);
    for (HeadsLayout* rows : {&s.q, &s.o}) rows->offset += b * rows->batch;
    for (HeadsLayout* rows : {&s.k, &s.v}) rows->offset += b * rows->batch + start * rows->row;
    std::memset(at(args.out[0], s.o.offset, s.dtype), 0,
                static_cast<std::size_t>(padding * s.o.row) * size_of(s.dtype));
    for (HeadsLayout* rows : {&s.q, &s.o}) rows->offset += padding * rows->row;
    s.queries -= padding;
    s.keys -= start;
    if (s.queries > 0) attend(s, {1, keys - start}, args);
  }

  AttentionShape shape_;
  Extent batch_;
  bool has_starts_;
};

std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  return prepare_attention(call, shape_of(call), AttentionOperands::Separate);
}
std::unique_ptr<Prepared> prepare_grad(const CallSpec& call) {
  return prepare_attention_grad(call, shape_of(call), AttentionOperands::Separate);
}
}  // namespace

std::vector<Kernel> attention_kernels() {
  return {{"cpu.attention", "attention", accepts_attention, prepare},
          {"cpu.attention_grad", "attention_grad", accepts_attention, prepare_grad},
          {"cpu.attention_cached", "attention_cached", accepts_attention, prepare_as<Cached>}};
}

}  // namespace aloft::cpu

// attention, attention_grad, attention_cached: separate operands with heads side by side.
#include "ops/attention.h"

#include <algorithm>

#include "backends/cpu/attention/attention_decode.h"
#include "backends/cpu/attention/attention_prepared.h"
#include "backends/cpu/prepare_as.h"

namespace aloft::cpu {
namespace {

// [B, length, heads, width], dense.
HeadsLayout dense(const Shape& s) {
  const std::int64_t row = s[2].max() * s[3].max();
  return {0, s[1].max() * row, row};
}

AttentionShape shape_of(const CallSpec& call, bool causal, double scale) {
  const Shape &q = call.in[0].shape, &k = call.in[1].shape;
  AttentionShape s;
  s.dtype = call.in[0].dtype;
  s.queries = q[1].max();
  s.keys = k[1].max();
  s.heads = q[2].max();
  s.kv_heads = k[2].max();
  s.width = q[3].max();
  s.causal = causal;
  s.scale = attention_scale(scale, s.width);
  s.q = s.o = dense(q);
  s.k = s.v = dense(k);
  s.threads = call.threads;
  return s;
}

AttentionShape shape_of(const CallSpec& call) {
  const auto a = from_attrs<AttentionAttrs>(call.attrs);
  return shape_of(call, a.causal, a.scale);
}

// How much of the cache counts is only known now; the rest of it is never read.
class Cached : public Prepared {
 public:
  explicit Cached(const CallSpec& call)
      : shape_(shape_of(call, true, from_attrs<AttentionCachedAttrs>(call.attrs).scale)),
        batch_(extent_of(call.in[0].shape[0], call)) {}
  std::size_t scratch_bytes() const override {
    return few() ? attention_decode_scratch(shape_) : attention_forward_scratch(shape_);
  }
  void run(const RunArgs& args) const override {
    const std::int64_t length = *static_cast<const std::int32_t*>(args.in[3]);
    const std::int64_t keys = std::clamp(length + shape_.queries, shape_.queries, shape_.keys);
    const AttentionForward operands{args.in[0], args.in[1], args.in[2], args.out[0], nullptr};
    const AttentionExtents actual{batch_.at(args.symbols), keys};
    (few() ? run_attention_decode : run_attention_forward)(shape_, actual, operands, args.scratch);
  }

 private:
  bool few() const { return shape_.queries <= kFewQueries; }
  AttentionShape shape_;
  Extent batch_;
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

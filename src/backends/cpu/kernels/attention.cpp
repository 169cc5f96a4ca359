// attention, attention_grad, attention_cached: separate operands with heads side by side.
#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/attention.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

std::optional<Refusal> accepts(const CallSpec& call) {
  if (call.in[0].dtype == DType::F64) return Refusal{"f64 is not supported"};
  for (const TensorType& t : call.in)
    if (is_float(t.dtype) && t.dtype != call.in[0].dtype && t.dtype != DType::F32)
      return Refusal{"statistics must be f32"};
  return std::nullopt;
}

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
  s.scale = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(s.width)));
  s.q = s.o = dense(q);
  s.k = s.v = dense(k);
  s.threads = call.threads;
  return s;
}

AttentionShape shape_of(const CallSpec& call) {
  const auto a = from_attrs<AttentionAttrs>(call.attrs);
  return shape_of(call, a.causal, a.scale);
}

class Forward : public Prepared {
 public:
  explicit Forward(const CallSpec& call)
      : shape_(shape_of(call)), batch_(extent_of(call.in[0].shape[0], call)) {}
  std::size_t scratch_bytes() const override { return attention_forward_scratch(shape_); }
  void run(const RunArgs& args) override {
    run_attention_forward(shape_, {batch_.at(args.symbols), shape_.keys},
                          {args.in[0], args.in[1], args.in[2], args.out[0],
                           static_cast<float*>(args.out[1])},
                          args.scratch);
  }

 private:
  AttentionShape shape_;
  Extent batch_;
};

class Backward : public Prepared {
 public:
  explicit Backward(const CallSpec& call)
      : shape_(shape_of(call)),
        batch_(extent_of(call.in[0].shape[0], call)),
        has_dlse_(call.in.size() > 6) {}
  std::size_t scratch_bytes() const override { return attention_backward_scratch(shape_); }
  void run(const RunArgs& args) override {
    AttentionBackward x;
    x.q = args.in[0], x.k = args.in[1], x.v = args.in[2], x.o = args.in[3], x.d_o = args.in[5];
    x.lse = static_cast<const float*>(args.in[4]);
    x.dlse = has_dlse_ ? static_cast<const float*>(args.in[6]) : nullptr;
    x.dq = args.out[0], x.dk = args.out[1], x.dv = args.out[2];
    run_attention_backward(shape_, {batch_.at(args.symbols), shape_.keys}, x, args.scratch);
  }

 private:
  AttentionShape shape_;
  Extent batch_;
  bool has_dlse_;
};

// How much of the cache counts is only known now; the rest of it is never read.
class Cached : public Prepared {
 public:
  explicit Cached(const CallSpec& call)
      : shape_(shape_of(call, true, from_attrs<AttentionCachedAttrs>(call.attrs).scale)),
        batch_(extent_of(call.in[0].shape[0], call)) {}
  std::size_t scratch_bytes() const override { return attention_forward_scratch(shape_); }
  void run(const RunArgs& args) override {
    const std::int64_t length = *static_cast<const std::int32_t*>(args.in[3]);
    const std::int64_t keys = std::clamp(length + shape_.queries, shape_.queries, shape_.keys);
    run_attention_forward(shape_, {batch_.at(args.symbols), keys},
                          {args.in[0], args.in[1], args.in[2], args.out[0], nullptr}, args.scratch);
  }

 private:
  AttentionShape shape_;
  Extent batch_;
};

template <class K>
std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  return std::make_unique<K>(call);
}

}  // namespace

std::vector<Kernel> attention_kernels() {
  return {{"cpu.attention", "attention", accepts, prepare<Forward>},
          {"cpu.attention_grad", "attention_grad", accepts, prepare<Backward>},
          {"cpu.attention_cached", "attention_cached", accepts, prepare<Cached>}};
}

}  // namespace aloft::cpu

// attention_qkv and its gradient: the same code as attention, with the strides of the packed
// tensor.
#include "ops/attention_qkv.h"

#include <cmath>

#include "backends/cpu/attention.h"
#include "backends/cpu/tiles.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

std::optional<Refusal> accepts(const CallSpec& call) {
  if (call.in[0].dtype == DType::F64) return Refusal{"f64 is not supported"};
  for (const TensorType& t : call.in)
    if (t.dtype != call.in[0].dtype && t.dtype != DType::F32)
      return Refusal{"statistics must be f32"};
  return std::nullopt;
}

AttentionShape shape_of(const CallSpec& call) {
  const auto a = from_attrs<AttentionQkvAttrs>(call.attrs);
  const Shape& qkv = call.in[0].shape;
  AttentionShape s;
  s.dtype = call.in[0].dtype;
  s.queries = s.keys = qkv[1].max();
  s.heads = a.heads;
  s.kv_heads = a.kv();
  s.width = qkv[2].max() / a.all_heads();
  s.causal = a.causal;
  s.scale =
      static_cast<float>(a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(s.width)));
  const std::int64_t row = qkv[2].max(), out = a.heads * s.width;
  s.q = {0, s.queries * row, row};
  s.k = {a.heads * s.width, s.queries * row, row};
  s.v = {(a.heads + a.kv()) * s.width, s.queries * row, row};
  s.o = {0, s.queries * out, out};
  s.threads = call.threads;
  return s;
}

class Forward : public Prepared {
 public:
  explicit Forward(const CallSpec& call)
      : shape_(shape_of(call)), batch_(extent_of(call.in[0].shape[0], call)) {}
  std::size_t scratch_bytes() const override { return attention_forward_scratch(shape_); }
  void run(const RunArgs& args) override {
    const void* qkv = args.in[0];
    run_attention_forward(shape_, {batch_.at(args.symbols), shape_.keys},
                          {qkv, qkv, qkv, args.out[0], static_cast<float*>(args.out[1])},
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
        has_dlse_(call.in.size() > 4) {}
  std::size_t scratch_bytes() const override { return attention_backward_scratch(shape_); }
  void run(const RunArgs& args) override {
    AttentionBackward x;
    x.q = x.k = x.v = args.in[0];
    x.o = args.in[1], x.d_o = args.in[3];
    x.lse = static_cast<const float*>(args.in[2]);
    x.dlse = has_dlse_ ? static_cast<const float*>(args.in[4]) : nullptr;
    x.dq = x.dk = x.dv = args.out[0];
    run_attention_backward(shape_, {batch_.at(args.symbols), shape_.keys}, x, args.scratch);
  }

 private:
  AttentionShape shape_;
  Extent batch_;
  bool has_dlse_;
};

template <class K>
std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  return std::make_unique<K>(call);
}

}  // namespace

std::vector<Kernel> attention_qkv_kernels() {
  return {{"cpu.attention_qkv", "attention_qkv", accepts, prepare<Forward>},
          {"cpu.attention_qkv_grad", "attention_qkv_grad", accepts, prepare<Backward>}};
}

}  // namespace aloft::cpu

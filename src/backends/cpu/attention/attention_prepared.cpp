#include "backends/cpu/attention/attention_prepared.h"

#include <cmath>

namespace aloft::cpu {
namespace {

// 0, 1, 2 for separate tensors; 0, 0, 0 for a packed one.
struct Places {
  int q = 0, k = 0, v = 0;
  explicit Places(AttentionOperands operands) {
    if (operands == AttentionOperands::Separate) k = 1, v = 2;
  }
};

class Forward : public Prepared {
 public:
  Forward(const CallSpec& call, const AttentionShape& shape, Places at)
      : shape_(shape), batch_(extent_of(call.in[0].shape[0], call)), at_(at) {}
  std::size_t scratch_bytes() const override { return attention_forward_scratch(shape_); }
  void run(const RunArgs& args) const override {
    run_attention_forward(shape_, {batch_.at(args.symbols), shape_.keys},
                          {args.in[at_.q], args.in[at_.k], args.in[at_.v], args.out[0],
                           static_cast<float*>(args.out[1])},
                          args.scratch);
  }

 private:
  AttentionShape shape_;
  Extent batch_;
  Places at_;
};

class Backward : public Prepared {
 public:
  Backward(const CallSpec& call, const AttentionShape& shape, Places at)
      : shape_(shape),
        batch_(extent_of(call.in[0].shape[0], call)),
        at_(at),
        has_dlse_(static_cast<int>(call.in.size()) > at.v + 4) {}
  std::size_t scratch_bytes() const override { return attention_backward_scratch(shape_); }
  void run(const RunArgs& args) const override {
    const int rest = at_.v + 1;
    AttentionBackward x;
    x.q = args.in[at_.q], x.k = args.in[at_.k], x.v = args.in[at_.v];
    x.o = args.in[rest], x.d_o = args.in[rest + 2];
    x.lse = static_cast<const float*>(args.in[rest + 1]);
    x.dlse = has_dlse_ ? static_cast<const float*>(args.in[rest + 3]) : nullptr;
    x.dq = args.out[at_.q], x.dk = args.out[at_.k], x.dv = args.out[at_.v];
    run_attention_backward(shape_, {batch_.at(args.symbols), shape_.keys}, x, args.scratch);
  }

 private:
  AttentionShape shape_;
  Extent batch_;
  Places at_;
  bool has_dlse_;
};

}  // namespace

std::optional<Refusal> accepts_attention(const CallSpec& call) {
  if (call.in[0].dtype == DType::F64) return Refusal{"f64 is not supported"};
  for (const TensorType& t : call.in)
    if (is_float(t.dtype) && t.dtype != call.in[0].dtype && t.dtype != DType::F32)
      return Refusal{"statistics must be f32"};
  return std::nullopt;
}

float attention_scale(double scale, std::int64_t width) {
  return static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(width)));
}

std::unique_ptr<Prepared> prepare_attention(const CallSpec& call, const AttentionShape& shape,
                                            AttentionOperands operands) {
  return std::make_unique<Forward>(call, shape, Places(operands));
}

std::unique_ptr<Prepared> prepare_attention_grad(const CallSpec& call, const AttentionShape& shape,
                                                 AttentionOperands operands) {
  return std::make_unique<Backward>(call, shape, Places(operands));
}

}  // namespace aloft::cpu

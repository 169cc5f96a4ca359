// attention_qkv and its gradient: the same code as attention, with the strides of the packed
// tensor.
#include "ops/attention_qkv.h"

#include "backends/cpu/attention/attention_prepared.h"

namespace aloft::cpu {
namespace {

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
  s.scale = attention_scale(a.scale, s.width);
  const std::int64_t row = qkv[2].max(), out = a.heads * s.width;
  s.q = {0, s.queries * row, row};
  s.k = {a.heads * s.width, s.queries * row, row};
  s.v = {(a.heads + a.kv()) * s.width, s.queries * row, row};
  s.o = {0, s.queries * out, out};
  s.threads = call.threads;
  return s;
}

std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  return prepare_attention(call, shape_of(call), AttentionOperands::Packed);
}
std::unique_ptr<Prepared> prepare_grad(const CallSpec& call) {
  return prepare_attention_grad(call, shape_of(call), AttentionOperands::Packed);
}

}  // namespace

std::vector<Kernel> attention_qkv_kernels() {
  return {{"cpu.attention_qkv", "attention_qkv", accepts_attention, prepare},
          {"cpu.attention_qkv_grad", "attention_qkv_grad", accepts_attention, prepare_grad}};
}

}  // namespace aloft::cpu

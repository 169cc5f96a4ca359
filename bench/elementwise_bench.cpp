// Element-wise, reduction and shape kernels at the sizes of a GPT-2 124M step with 1,024 tokens.
//
//   elementwise_bench [--benchmark_filter=TEXT]     (OMP_NUM_THREADS sets the threads)
#include "kernel_calls.h"

namespace {

using namespace aloft;
using bench::attrs;
using bench::Call;

std::vector<Call> calls_for(DType t) {
  const TensorType x{t, {1024, 768}}, wide{t, {1024, 3072}}, row{t, {3072}}, one{t, {}};
  const TensorType column{t, {1024, 1}}, mask{DType::Bool, {1024, 3072}};
  const TensorType logits{t, {1024, 50304}}, heads{t, {4, 256, 12, 64}}, rng{DType::I64, {3}};
  const auto axes = [](std::int64_t a) { return attrs({{"axes", Ints{a}}}); };
  std::vector<Call> calls = {
      {"add", {}, {wide, wide}},
      {"add", {}, {wide, row}, 1, " row"},
      {"mul", {}, {wide, column}, 1, " column"},
      {"mul", {}, {wide, one}, 1, " scalar"},
      {"where", {}, {mask, wide, wide}, 2},
      {"cast", attrs({{"to", t == DType::F32 ? DType::BF16 : DType::F32}}), {wide}},
      {"sum", axes(0), {wide}, 1, " rows"},
      {"sum", axes(1), {wide}, 1, " columns"},
      {"sum", {}, {logits}, 1, " all"},
      {"softmax", {}, {{t, {48, 256, 256}}}},
      {"log_softmax", {}, {logits}},
      {"transpose", attrs({{"perm", Ints{0, 2, 1, 3}}}), {heads}, 1, " 0213"},
      {"transpose", attrs({{"perm", Ints{1, 0}}}), {wide}, 1, " 10"},
      {"slice", attrs({{"axis", std::int64_t{1}}, {"start", std::int64_t{768}}}), {wide}},
      {"dropout", attrs({{"p", 0.1}}), {wide, rng}}};
  for (const char* op : {"exp", "log", "tanh", "sin", "erf", "gelu", "gelu_tanh", "silu", "pow"})
    calls.push_back({op, {}, {wide}});
  calls.back().in.push_back(wide);
  for (const char* op : {"gelu_grad", "gelu_tanh_grad"}) calls.push_back({op, {}, {wide, wide}});
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Call> calls;
  for (const DType t : {DType::F32, DType::BF16, DType::F16})
    for (const Call& c : calls_for(t)) calls.push_back(c);
  return bench::run_calls(argc, argv, calls);
}

// Row, channel and table kernels at the sizes of a GPT-2 124M step with 1,024 tokens (and of an
// image network).
//
//   rows_bench [--benchmark_filter=TEXT]     (OMP_NUM_THREADS sets the threads)
#include "kernel_calls.h"

namespace {

using namespace aloft;
using bench::attrs;
using bench::Call;

std::vector<Call> calls_for(DType t) {
  const DType f32 = DType::F32, ids = DType::I32;
  const std::int64_t rows = 1024, dim = 768, vocab = 50304;
  const TensorType x{t, {rows, dim}}, p{f32, {dim}}, s{f32, {rows}};
  const TensorType logits{t, {rows, vocab}}, targets{ids, {rows}}, heads{t, {4, 256, 12, 64}};
  const TensorType scores{t, {48, 256, 256}};
  const TensorType image{t, {32, 64, 28, 28}}, c{f32, {64}}, groups{f32, {32, 8}};
  return {
      {"layer_norm", {}, {x, p, p}},
      {"layer_norm_grad", {}, {x, x, s, s, p}},
      {"rms_norm", {}, {x, p}},
      {"rms_norm_grad", {}, {x, x, s, p}},
      {"softmax_grad", {}, {scores, scores}},
      {"log_softmax_grad", {}, {scores, scores}},
      {"cross_entropy", {}, {logits, targets}, vocab},
      {"cross_entropy_grad", {}, {logits, targets, {f32, {}}}, vocab},
      {"embedding", {}, {{t, {vocab, dim}}, targets}, vocab},
      {"embedding_grad", attrs({{"rows", vocab}}), {x, targets}, vocab},
      {"rotary", {}, {heads, {ids, {256}}}, 256},
      {"rotary", attrs({{"interleaved", true}}), {heads, {ids, {256}}}, 256, " interleaved"},
      {"group_norm", attrs({{"groups", std::int64_t{8}}}), {image, c, c}},
      {"group_norm_grad", attrs({{"groups", std::int64_t{8}}}), {image, image, groups, groups, c}},
      {"batch_norm", {}, {image, c, c, c, c}},
      {"batch_norm_grad", {}, {image, image, c, c, c}},
      {"statistics", {}, {{t, {rows, 4 * dim}}}}};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Call> calls;
  for (const DType t : {DType::F32, DType::BF16, DType::F16})
    for (const Call& c : calls_for(t)) calls.push_back(c);
  return bench::run_calls(argc, argv, calls);
}

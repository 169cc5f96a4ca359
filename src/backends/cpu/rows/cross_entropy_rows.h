// One row of logits at a time: its log-sum-exp, its gradient, its logarithms of probabilities. What
// the kernels of cross_entropy and softmax and the chunked head share.
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

struct CrossEntropyRows {
  // log(sum(exp(x))) of n > 0 logits in one pass over memory; NaN where one is NaN or inf, or where
  // all are -inf. Where `total` is not null it gets the sum of the logits.
  double (*lse)(const void* x, std::int64_t n, double* total) = nullptr;
  // dx = (exp(x - lse) - floor) * scale. dx may be x where the types are equal.
  void (*gradient)(const void* x, std::int64_t n, float lse, float floor, float scale,
                   void* dx) = nullptr;
  // y = e^x / sum(e^x), in the logits' type, good for a low one; `e` has room for n and a vector
  // more. y may be x.
  void (*softmax)(const void* x, std::int64_t n, float* e, void* y) = nullptr;
  // y = x - lse, in the logits' type; y may be x. Past the caches where `streams`: then y begins on
  // a cache line.
  void (*log_softmax)(const void* x, std::int64_t n, double lse, bool streams, void* y) = nullptr;
};

// Types f32, bf16, f16.
CrossEntropyRows cross_entropy_rows(DType logits, DType gradient);

}  // namespace aloft::cpu

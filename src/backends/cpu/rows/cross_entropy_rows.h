// One row of logits at a time: its log-sum-exp, its gradient, its logarithms of probabilities. What
// the kernels of cross_entropy and softmax and the chunked head share.
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

// log(sum(exp(x))) as a sum of two: `high` is rounded as f32 near the logits is, and `low` is what
// that rounding left. Logits near 1e6 stand 1/16 apart: one number in f32 would lose the rest, and
// with it the probabilities, which are exponentials of the difference.
struct LogSumExp {
  float high = 0, low = 0;
  // How far it lies above x: -log of x's probability.
  double above(double x) const { return static_cast<double>(high) - x + static_cast<double>(low); }
};

struct CrossEntropyRows {
  // log(sum(exp(x))) of n > 0 logits in one pass over memory; NaN where one is NaN or inf, or where
  // all are -inf.
  LogSumExp (*log_sum_exp)(const void* x, std::int64_t n) = nullptr;
  // The mean of x - from.
  double (*mean_above)(const void* x, std::int64_t n, float from) = nullptr;
  // dx = (exp(x - sum) - floor) * scale. dx may be x where the types are equal.
  void (*gradient)(const void* x, std::int64_t n, LogSumExp sum, float floor, float scale,
                   void* dx) = nullptr;
  // y = e^x / sum(e^x), in the logits' type, good for a low one; `e` has room for n and a vector
  // more. y may be x.
  void (*softmax)(const void* x, std::int64_t n, float* e, void* y) = nullptr;
  // y = x - sum, in the logits' type; y may be x. Past the caches where `streams`: then y begins on
  // a cache line.
  void (*log_softmax)(const void* x, std::int64_t n, LogSumExp sum, bool streams,
                      void* y) = nullptr;
};

// Types f32, bf16, f16.
CrossEntropyRows cross_entropy_rows(DType logits, DType gradient);

}  // namespace aloft::cpu

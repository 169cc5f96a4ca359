// A row's part of a cross-entropy: its loss and its gradient, from the logits and the class they
// are held against. What the kernels of cross_entropy and the chunked head share.
#pragma once

#include <cstdint>

#include "backends/cpu/rows/cross_entropy_rows.h"
#include "ops/cross_entropy.h"

namespace aloft::cpu {

class CrossEntropyLoss {
 public:
  CrossEntropyLoss(const CrossEntropyAttrs& attrs, DType logits, DType targets,
                   std::int64_t classes);

  // What the sum of the rows' losses is divided by.
  double divisor(const void* targets, std::int64_t rows) const;

  struct Row {
    const void* logits;
    std::int64_t target;
    LogSumExp sum;
  };
  // The sum is looked for where loss and gradient ask for it: the row counts and has a class.
  Row row(const void* logits, const void* targets, std::int64_t index) const;

  // 0 where the row is ignored, NaN where its target is no class.
  double loss(const Row& row) const;
  // In the logits' type; dx may be the logits.
  void gradient(const Row& row, float scale, void* dx) const;

 private:
  bool counts(std::int64_t target) const { return target != attrs_.ignore_index; }
  bool is_class(std::int64_t target) const { return target >= 0 && target < classes_; }
  float logit(const Row& row) const;

  CrossEntropyAttrs attrs_;
  DType logits_, targets_;
  std::int64_t classes_;
  CrossEntropyRows sweeps_;
};

}  // namespace aloft::cpu

// The element type in which an op keeps what it reduces out of x (means, log-sum-exps, losses).
#pragma once

#include "graph/scope.h"
#include "types/dtype.h"

namespace aloft {

constexpr DType statistics_type(DType x) { return x == DType::F64 ? DType::F64 : DType::F32; }

// While one lives, what is emitted has the types that are written: no precision policy narrows the
// counts and quotients of a gradient, which end at 65,504 in f16.
class AsWritten {
 public:
  AsWritten() : scope_(without_policy()) {}

 private:
  static Where without_policy() {
    Where w = current_where();
    w.policy = {};
    return w;
  }
  Scope scope_;
};

}  // namespace aloft

// Which element types a back end can hold and multiply: what exists, as opposed to what is safe
// (Numeric) and what is wanted (the precision recipe).
#pragma once

#include "types/dtype.h"

namespace aloft {

struct Capability {
  bool stores_bf16 = true;  // buffers of the type, and kernels that read and write them
  bool stores_f16 = true;
  // Products of two values of the type summed in f32 without widening the inputs in memory first,
  // by hardware or by an exact substitute.
  bool computes_bf16 = true;
  bool computes_f16 = true;

  constexpr bool stores(DType t) const {
    return t == DType::BF16 ? stores_bf16 : t == DType::F16 ? stores_f16 : true;
  }
  constexpr bool computes(DType t) const {
    return t == DType::BF16 ? computes_bf16 : t == DType::F16 ? computes_f16 : true;
  }
  friend constexpr bool operator==(const Capability&, const Capability&) = default;
};

}  // namespace aloft

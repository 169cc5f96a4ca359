// Reordering of axes.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct TransposeAttrs {
  Ints perm;
  static constexpr auto fields() {
    return std::tuple{field("perm", &TransposeAttrs::perm, "axis i of the result is axis perm[i]")};
  }
};

Tensor transpose(Operand x, const Ints& perm);
Tensor swap_axes(Operand x, int a, int b);

}  // namespace aloft

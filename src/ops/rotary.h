// Rotary position embedding (Su et al. 2021).
#pragma once

#include "ops/declared.h"

namespace aloft {

// Options of rotary().
struct RotaryAttrs {
  double base = 10000;
  bool interleaved = false;
  bool inverse = false;
  static constexpr auto fields() {
    using A = RotaryAttrs;
    return FieldList{
        field("base", &A::base, "pair i of D / 2 turns by position * base^(-2 i / D)"),
        field("interleaved", &A::interleaved,
              "pairs are (2 i, 2 i + 1) as in GPT-J, else (i, i + D / 2) as in GPT-NeoX and Llama"),
        field("inverse", &A::inverse, "turn backwards")};
  }
};

// x [B, T, H, D] with D even, integer positions [T] or [B, T] -> x with each pair of a head turned
// by its position's angle. Its inverse is its gradient.
Tensor rotary(Operand x, Operand positions, const RotaryAttrs& attrs = {});

}  // namespace aloft

// Rotary position embedding (Su et al. 2021).
#pragma once

#include <string>

#include "ops/declared.h"

namespace aloft {

// Options of rotary().
struct RotaryAttrs {
  double base = 10000;
  bool interleaved = false;
  bool inverse = false;
  std::int64_t turned = 0;
  std::string scaling = {};
  static constexpr auto fields() {
    using A = RotaryAttrs;
    return FieldList{
        field("base", &A::base, "pair i of D / 2 turns by position * base^(-2 i / D)"),
        field("interleaved", &A::interleaved,
              "pairs are (2 i, 2 i + 1) as in GPT-J, else (i, i + D / 2) as in GPT-NeoX and Llama"),
        field("inverse", &A::inverse, "turn backwards"),
        field("turned", &A::turned,
              "D, the first features of a head, which turn; the others stay; 0: all"),
        field(
            "scaling", &A::scaling,
            "how angles are stretched, as RotaryScaling says it: llama3 factor=8 ...; empty: not")};
  }
};

// x [B, T, H, W], integer positions [T] or [B, T] -> x with each pair of a head's first `turned`
// features turned by its position's angle, and multiplied by the scaling's magnitude. Turning
// backwards is its gradient.
Tensor rotary(Operand x, Operand positions, const RotaryAttrs& attrs = {});
// The same where angles depend on how long a sequence is (longrope): integers lengths [B] say it
// for each sequence. Without them it is the largest position of the call that does.
Tensor rotary_by_length(Operand x, Operand positions, Operand lengths,
                        const RotaryAttrs& attrs = {});

}  // namespace aloft

// The elements of an axis in another order, or several times.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct FlipAttrs {
  std::int64_t axis = 0;
  static constexpr auto fields() {
    return FieldList{field("axis", &FlipAttrs::axis, "reversed axis; negative from the back")};
  }
};

struct RollAttrs {
  std::int64_t axis = 0;
  std::int64_t shift = 1;
  static constexpr auto fields() {
    using A = RollAttrs;
    return FieldList{field("axis", &A::axis, "turned axis; negative from the back"),
                     field("shift", &A::shift, "places towards higher indices")};
  }
};

struct RepeatAttrs {
  std::int64_t axis = 0;
  std::int64_t count = 1;
  static constexpr auto fields() {
    using A = RepeatAttrs;
    return FieldList{field("axis", &A::axis, "repeated axis; negative from the back"),
                     field("count", &A::count, "how often, at least 1")};
  }
};

// The axis back to front.
Tensor flip(Operand x, std::int64_t axis);
// Each element `shift` places towards higher indices. Elements pushed out at one end come in at the
// other. The axis is not symbolic.
Tensor roll(Operand x, std::int64_t shift, std::int64_t axis);
// The whole axis `count` times: a b -> a b a b. The axis, and the outermost, are not symbolic.
Tensor tile(Operand x, std::int64_t count, std::int64_t axis);
// Each element `count` times: a b -> a a b b.
Tensor repeat(Operand x, std::int64_t count, std::int64_t axis);

}  // namespace aloft

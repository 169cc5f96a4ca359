// Values inside a program that somebody asks to look at (passes/tap_pattern.h).
#pragma once

#include <string>

#include "types/shape.h"

namespace aloft {

// A value that is looked at.
struct Tap {
  std::string name;
  TensorType type;
};

// A value that a pattern asks for and the program never has.
struct RefusedTap {
  std::string name;  // as passes/tap_pattern.h says
  std::string why;   // names the op that takes the value in
};

}  // namespace aloft

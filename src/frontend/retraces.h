// For which calls a compiled function was traced, and the one warning where that never ends.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/source_location.h"

namespace aloft {

// Inside: something in the arguments of a call that a program depends on.
struct CallFact {
  std::string place;  // "argument 2, [0].mask"
  std::string value;  // "f32[8,3]", or a number
  bool is_tensor = false;
};

// Inside: counts traces, tells of the eighth.
class Retraces {
 public:
  static constexpr std::size_t kTold = 8;

  Retraces(std::string function, SourceLocation place)
      : function_(std::move(function)), place_(place) {}
  // The function has been traced for a call of these. The warning, where this is the one to tell
  // of; else empty.
  std::string add(std::vector<CallFact> call);

 private:
  std::string function_;
  SourceLocation place_;
  std::vector<std::vector<CallFact>> calls_;  // the first kTold
};

}  // namespace aloft

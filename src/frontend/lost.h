// What of a value's history is not recorded: dropped since it was computed, or never seen.
#pragma once

#include <cstdint>

namespace aloft {

enum class Lost : std::uint8_t {
  Nothing,
  Values,      // what it was computed from, but no parameter
  Parameters,  // ways back to parameters
};

}  // namespace aloft

// Finds out whether somebody takes the bound of a symbolic length for the length itself: asks for
// it (Dim::max), or compares the length with a number that it may be. Not noted is how a length is
// written: Dim::is_constant, str, symbol and times, and those of Shape. In a function that is being
// traced for a batch they are false, "B<=8", B and 256 (of 256*B<=8) where the same function, run
// eagerly, gets true, "8", no symbol and 1. What it decides by them differs between its two modes.
#pragma once

#include <cstdint>

namespace aloft {

// So many rows at least does a symbol stand for where notes are heeded (frontend/compile.h): fewer
// may mean something else, and are no batch.
inline constexpr std::int64_t kLeastBatch = 2;

// Notes, while it lives on this thread, that somebody took a symbol's bound for its length: what is
// computed from the number holds for the longest batch alone. The innermost one notes; one without
// a note, around what knows bounds from lengths, notes nothing.
class BoundWatch {
 public:
  explicit BoundWatch(bool* note);
  ~BoundWatch();
  BoundWatch(const BoundWatch&) = delete;
  BoundWatch& operator=(const BoundWatch&) = delete;

 private:
  bool* saved_;
};

}  // namespace aloft

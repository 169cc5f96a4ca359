// Finds out whether somebody takes the bound of a symbolic length for the length itself (Dim::max).
#pragma once

namespace aloft {

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

// How long training has waited for something.
#pragma once

#include <utility>

#include "base/clock.h"

namespace aloft {

class WaitingTime {
 public:
  // Adds what `act` takes. One within another counts once.
  template <class Act>
  void time(const Act& act) {
    if (is_inside_) return act();
    const Inside inside(*this);
    act();
  }
  // Seconds since the last call.
  double take() { return std::exchange(seconds_, 0); }

 private:
  struct Inside {
    explicit Inside(WaitingTime& w) : all(w), begun(monotonic_seconds()) { all.is_inside_ = true; }
    ~Inside() {
      all.is_inside_ = false;
      all.seconds_ += monotonic_seconds() - begun;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    WaitingTime& all;
    double begun;
  };

  double seconds_ = 0;
  bool is_inside_ = false;
};

}  // namespace aloft

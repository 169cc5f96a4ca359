// All that listen to a run, and how an event reaches them: one behind the other, in one order.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/listener.h"

namespace aloft {

class Listeners {
 public:
  // The library's own come first, then those of the program, which must outlive this.
  Listeners(std::vector<std::unique_ptr<Listener>> own, const std::vector<Listener*>& guests);

  // The first rule by which the run is over as it stands; whether anything of its end is missing.
  std::optional<Stop> over_at(const Standing& standing) const;
  bool lacks_at(const Standing& standing) const;

  // Tells all. What one throws ends the run, and is thrown here at once; while leaving, what one of
  // the program's throws is said alone.
  template <class Event>
  void tell(void (Listener::*handler)(const Event&), const Event& event) {
    for (Place& place : places_) call(place, [&] { (place.listener->*handler)(event); });
  }
  template <class Event>
  void tell(void (Listener::*handler)(const Event&, Control&), const Event& event,
            Control& control) {
    for (Place& place : places_) call(place, [&] { (place.listener->*handler)(event, control); });
  }
  // Tells all of the end of a run that is saved, which cannot be undone: what one cannot make is
  // said. Of errors that are not for what lies in the directory the first is kept: failure().
  // Whether nobody was interrupted by a signal.
  template <class Event>
  bool tell_behind_the_end(void (Listener::*handler)(const Event&), const Event& event) {
    bool whole = true;
    for (Place& place : places_)
      if (place.listens)
        whole &= try_behind_the_end(place, [&] { (place.listener->*handler)(event); });
    return whole;
  }
  // The same of a run that ends with an error, which nothing may hide: what fails is said.
  template <class Event>
  void tell_quietly(void (Listener::*handler)(const Event&), const Event& event) {
    for (Place& place : places_)
      if (place.listens) try_quietly(place, [&] { (place.listener->*handler)(event); });
  }

  // From here on the run ends with an error.
  void leave() { is_leaving_ = true; }
  // Those of the program that have thrown hear of its end all the same.
  void hear_the_end();
  // Whether what ends the run was thrown by one of the program's.
  bool guest_has_thrown() const { return guest_has_thrown_; }
  // What was thrown behind the end of the run, to be thrown when all has been told.
  std::exception_ptr failure() const { return failure_; }

 private:
  struct Place {
    Listener* listener;
    bool is_guest;
    bool listens = true;  // a guest that has thrown does not
  };
  // Without a detour: most events have no handler, and a step waits.
  template <class Act>
  void call(Place& place, const Act& act) {
    if (!place.listens) return;
    if (is_leaving_ && place.is_guest) return try_quietly(place, act);
    try {
      act();
    } catch (...) {
      place.listens = !place.is_guest;
      guest_has_thrown_ |= place.is_guest;
      throw;
    }
  }
  bool try_behind_the_end(Place& place, const std::function<void()>& act);
  void try_quietly(Place& place, const std::function<void()>& act);

  std::vector<std::unique_ptr<Listener>> own_;
  std::vector<Place> places_;
  bool is_leaving_ = false, guest_has_thrown_ = false;
  std::exception_ptr failure_;
};

}  // namespace aloft

#include "run/listeners.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"

namespace aloft {

Listeners::Listeners(std::vector<std::unique_ptr<Listener>> own,
                     const std::vector<Listener*>& guests)
    : own_(std::move(own)) {
  for (const auto& listener : own_) places_.push_back({listener.get(), false});
  for (Listener* listener : guests) places_.push_back({listener, true});
}

std::optional<Stop> Listeners::over_at(const Standing& standing) const {
  for (const Place& place : places_)
    if (auto stop = place.listener->over_at(standing)) return stop;
  return std::nullopt;
}

bool Listeners::lacks_at(const Standing& standing) const {
  for (const Place& place : places_)
    if (place.listener->lacks_at(standing)) return true;
  return false;
}

void Listeners::hear_the_end() {
  for (Place& place : places_) place.listens = true;
}

bool Listeners::try_behind_the_end(Place& place, const std::function<void()>& act) {
  const std::string what = place.listener->makes();
  try {
    act();
  } catch (const Interrupted&) {
    return false;
  } catch (const DataError& e) {
    log_warning("{} cannot be made: {}", what, e.what());
  } catch (const std::exception& e) {
    if (failure_) {
      log_warning("{} cannot be made: {}", what, e.what());
    } else {
      log_warning("{} cannot be made; the run stands as it is saved", what);
      failure_ = std::current_exception();
    }
  } catch (...) {  // a guest may throw anything
    log_warning("{} cannot be made; the run stands as it is saved", what);
    if (!failure_) failure_ = std::current_exception();
  }
  return true;
}

void Listeners::try_quietly(Place& place, const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& e) {
    place.listens = !place.is_guest;
    log_warning("{} cannot be made: {}", place.listener->makes(), e.what());
  } catch (...) {
    place.listens = !place.is_guest;
    log_warning("{} cannot be made", place.listener->makes());
  }
}

}  // namespace aloft

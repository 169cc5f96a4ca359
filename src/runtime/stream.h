// Streams: what a device is given to do, in order, and events, the moments between. On a device
// that works at once (the CPU) everything has happened when the call returns.
#pragma once

#include <memory>

#include "runtime/buffer.h"

namespace aloft {

class Device;

// A moment on a stream. An empty one has happened.
class Event {
 public:
  // What a device knows of one.
  class State {
   public:
    virtual ~State() = default;
    virtual bool has_happened() const = 0;
    // Until it has; what went wrong before it comes out (InternalError, EnvironmentError), with the
    // instruction's name.
    virtual void wait() const = 0;
    // When it was, by the device's clock; once it has happened.
    virtual double time() const = 0;
    // Whether that clock is one that devices in software count on: what waits for the event begins
    // no earlier than time(), though it may have happened long ago.
    virtual bool is_virtual() const { return false; }
  };

  Event() = default;
  explicit Event(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  bool has_happened() const { return !state_ || state_->has_happened(); }
  void wait() const {
    if (state_) state_->wait();
  }
  // When it was: seconds by the device's clock, waited for; 0 of an empty one.
  double seconds() const {
    wait();
    return state_ ? state_->time() : 0;
  }
  const std::shared_ptr<const State>& state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// What the memory that a copy goes to holds before.
enum class Before : std::uint8_t { Anything, Zeros };

// Work in order, handed over by one thread at a time. Kernels are handed over through
// Prepared::run, whose arguments name the stream. The host waits for it in Event::wait(),
// download(), synchronize() and Device::map(); what failed meanwhile comes out there.
class Stream {
 public:
  virtual ~Stream() = default;
  // As many bytes as `from` has, between spaces of the device, or between it and another device,
  // behind what that one's first stream was given to do; what that one is given from then on does
  // not wait for it.
  virtual void copy(const Buffer& to, const Buffer& from, Before before = Before::Anything) = 0;
  // The host's bytes into all of `to`: they are the caller's again when this returns.
  virtual void upload(const Buffer& to, const void* from) = 0;
  // All of `from` to the host: waits for everything that the device was given to do.
  virtual void download(void* to, const Buffer& from) = 0;
  // The moment behind everything handed over so far.
  virtual Event record() = 0;
  // What is handed over from here on waits for the event, of this device or another one.
  virtual void wait(const Event& event) = 0;
  // Until all is done; what went wrong comes out, once.
  virtual void synchronize() = 0;
};

}  // namespace aloft

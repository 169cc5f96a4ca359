// Looking on: what the programs and the eager calls of a device tell those who are attached to it.
// An observer reads; it never changes a bit of what is computed. While none is attached, a run
// costs one look at an empty list.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/stream.h"
#include "types/call.h"
#include "types/phase.h"

namespace aloft {

// Where a loop stands, by its random state: steps since the seed, micro-batches within the step.
struct LoopPlace {
  std::int64_t step = 0, micro_batch = 0;
};

// A program is about to run, or has been handed over.
struct ProgramEvent {
  std::string_view program;
  std::span<const std::int64_t> lengths;  // of its symbols, in its order
  LoopPlace at;
};

// An instruction of a program, or an op that is called eagerly.
struct OpEvent {
  std::string_view program;   // empty: an eager call
  int instruction = -1;       // in the program's list; -1: an eager call
  const CallSpec& call;       // op, attributes, types with lengths at their bounds
  std::string_view kernel;    // "cpu.matmul"
  std::string_view path;      // of the module: "h.3.attn.qkv"
  std::string_view identity;  // "h.3.attn.qkv/linear#0"; of an eager call path/op
  Phase phase = Phase::Forward;
  // Reading one copies it behind the work that was handed over so far; before(): results hold
  // nothing yet; after(): until it returns.
  std::span<const Buffer> in, out;
  std::span<const std::int64_t> lengths;  // actual, in the order of call.symbols()
  int stream = 0;
  LoopPlace at;
  Event begin, end;  // seconds() on the device's clock; before(): both empty
};

// What a handler computes itself, eagerly or by programs, nobody is told of. What it throws comes
// out when the program has been handed over to its end, or the eager call: nothing stops half way.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void program_begins(const ProgramEvent&) {}
  virtual void program_ends(const ProgramEvent&) {}
  virtual void before(const OpEvent&) {}
  virtual void after(const OpEvent&) {}
};

// Those who look on at a device, in the order in which they came.
class Observers {
 public:
  using List = std::vector<Observer*>;
  // Who is there now; null: nobody, or this thread is inside a handler.
  std::shared_ptr<const List> list() const;

 private:
  friend class Observing;
  void change(Observer& observer, bool is_there);
  mutable std::mutex mutex_;
  std::atomic<bool> is_empty_ = true;
  std::shared_ptr<const List> list_;
};

// Those who are told of one run, and the first thing that one of them threw.
class Telling {
 public:
  explicit Telling(const Observers::List& list) : list_(list) {}
  template <class F>
  void tell(const F& f) {
    const Inside inside;
    for (Observer* o : list_) try {
        f(*o);
      } catch (...) {
        if (!failure_) failure_ = std::current_exception();
      }
  }
  const std::exception_ptr& failure() const { return failure_; }

 private:
  friend class Observers;
  struct Inside {
    Inside() { is_inside(true); }
    ~Inside() { is_inside(false); }
  };
  static void is_inside(bool is);
  static bool is_inside();
  const Observers::List& list_;
  std::exception_ptr failure_;
};

class Device;

// While one lives, the observer is attached to the device: to runs and eager calls that begin then.
// It is ended where none of them is under way on another thread.
class Observing {
 public:
  Observing(Device& device, Observer& observer);
  ~Observing();
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;

 private:
  Device& device_;
  Observer& observer_;
};

}  // namespace aloft

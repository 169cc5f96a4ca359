// A stream of the software device: a thread that does what it was given, in order, some time after
// the call that gave it. What each piece of work would take on the processor that is played is
// added up on a virtual clock, which no real time reaches: the same work, the same timeline.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/stream.h"

namespace aloft::sim {

class SimDevice;

// A moment on some stream, and when it was by the virtual clock.
class SimEvent : public Event::State {
 public:
  bool has_happened() const override;
  void wait() const override;
  void happen(double time, std::exception_ptr failure);
  double time() const override;
  bool is_virtual() const override { return true; }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool has_happened_ = false;
  double time_ = 0;
  std::exception_ptr failure_;
};

// A piece of work as it was done: seconds by the virtual clock.
struct Span {
  int stream = 0;
  std::string name;
  double begin = 0, end = 0;
};

class SimStream : public Stream {
 public:
  // `delays`: another seed for each run of the device's threads through random waits; 0: none.
  SimStream(SimDevice& device, int index, std::uint64_t delays);
  ~SimStream() override;  // when all is done

  void copy(const Buffer& to, const Buffer& from, Before before) override;
  void upload(const Buffer& to, const void* from) override;
  void download(void* to, const Buffer& from) override;
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;

  // Work that takes so many virtual seconds. What it throws is kept, with its name, for the next
  // wait, and what was given behind it is left undone.
  void enqueue(std::string name, double seconds, std::function<void()> work);
  const SimDevice& device() const { return device_; }

 private:
  struct Task {
    std::string name;
    double seconds = 0, issued = 0;
    std::size_t tellings = 0;  // of failures, when it was issued
    std::function<void()> work;
    Event waits_for;
    std::shared_ptr<SimEvent> event;
    bool takes_failure = false;  // what went wrong so far is told by this event alone
  };
  Event record(bool takes_failure);
  void push(Task task);
  void loop();
  void run(Task& task);
  void delay();

  SimDevice& device_;
  const int index_;
  std::uint64_t delays_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool is_ending_ = false;
  double clock_ = 0;            // of the thread
  std::exception_ptr failure_;  // of the thread, until synchronize() has told it
  std::thread thread_;
};

}  // namespace aloft::sim

// A thread that fills a small ring of preallocated slots ahead of its consumer. What it fills does
// not depend on timing; no memory is allocated once it runs.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

namespace aloft {

// Memory of the batches made ahead, to be filled by a Prefetcher: `ahead` of them, cut to 1 .. 256
// (as many as hide any hiccup), and one more, each as `make` leaves it. EnvironmentError E0401
// where there cannot be `bytes` for each.
template <class Slot, class Make>
std::vector<Slot> make_slots(int ahead, double bytes, const Make& make) {
  const auto count = static_cast<std::size_t>(std::clamp(ahead, 1, 256)) + 1;
  constexpr double kMostBytes = 1LL << 46;  // no machine has more, whatever it says of itself
  const std::string what = std::to_string(count) + " batches that are made ahead";
  constexpr const char* kAdvice = "a smaller batch, or a smaller prefetch";
  const double all = static_cast<double>(count) * bytes;
  need_memory(all, what, kAdvice);
  try {
    if (all > kMostBytes) throw std::bad_alloc();
    std::vector<Slot> slots(count);
    for (Slot& slot : slots) make(slot);
    return slots;
  } catch (const std::bad_alloc&) {
    throw EnvironmentError("E0401", "not enough memory")
        .need(human_bytes(static_cast<std::uint64_t>(std::min(all, 1e19))) + " for " + what)
        .advice(kAdvice);
  }
}

template <class Slot>
class Prefetcher {
 public:
  // Calls `fill` on the slots in turn, from one thread, until it returns false (no more) or throws.
  // At least two slots: one is with the consumer.
  Prefetcher(std::vector<Slot> slots, std::function<bool(Slot&)> fill)
      : slots_(std::move(slots)), fill_(std::move(fill)), thread_([this] { run(); }) {}

  ~Prefetcher() { stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Waits for the next slot; it stays the caller's until the next call. nullptr after the last one.
  // An exception of `fill` arrives here, after the slots filled before it.
  Slot* next() {
    std::unique_lock lock(mutex_);
    if (lent_) {
      lent_ = false;
      ++taken_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return filled_ > taken_ || ended_; });
    if (filled_ > taken_) {
      lent_ = true;
      return &slots_[taken_ % slots_.size()];
    }
    if (error_) std::rethrow_exception(error_);
    return nullptr;
  }

  // As if nothing had been filled, on the same slots: whoever goes on from elsewhere needs no new
  // memory. `between` runs while no `fill` does. Where no thread can be started, next() throws that
  // error too.
  template <class Between>
  void restart(const Between& between) {
    stop();
    between();
    filled_ = taken_ = 0;
    lent_ = stop_ = ended_ = false;
    error_ = nullptr;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (...) {
      ended_ = true;
      error_ = std::current_exception();
      throw;
    }
  }

 private:
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void run() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || filled_ - taken_ < slots_.size(); });
        if (stop_) return;
      }
      bool more = false;
      std::exception_ptr error;
      try {
        more = fill_(slots_[filled_ % slots_.size()]);  // filled_ is written by this thread alone
      } catch (...) {
        error = std::current_exception();
      }
      std::lock_guard lock(mutex_);
      if (more)
        ++filled_;
      else
        ended_ = true;
      error_ = error;
      changed_.notify_all();
      if (ended_) return;
    }
  }

  std::vector<Slot> slots_;
  std::function<bool(Slot&)> fill_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t filled_ = 0, taken_ = 0;  // since the start; the slot in use is taken_ % slots
  bool lent_ = false, stop_ = false, ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it starts when everything above is there
};

}  // namespace aloft

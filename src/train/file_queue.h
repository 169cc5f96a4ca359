// Files that are written while training goes on: a thread of its own writes them in the order in
// which they are given. What waits is bounded: whoever gives more than there is room for waits, and
// nothing is dropped.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace aloft {

class FileQueue {
 public:
  // `room`: bytes of what waits; one that is larger waits alone.
  explicit FileQueue(std::uint64_t room);
  // Writes what waits, whatever becomes of it.
  ~FileQueue();
  FileQueue(const FileQueue&) = delete;
  FileQueue& operator=(const FileQueue&) = delete;

  // `write` makes a file of `bytes` bytes that it keeps. Throws what an earlier one threw, behind
  // which none is written any more.
  void add(std::uint64_t bytes, std::function<void()> write);
  // Until all are written; throws what one threw.
  void wait();

  // So far: for how many seconds add() has waited for room, and wait().
  double waited_s() const { return waited_s_; }
  // How many are not there because one could not be written: none where wait() has returned.
  std::uint64_t dropped() const;

 private:
  struct Waiting {
    std::uint64_t bytes = 0;
    std::function<void()> write;
  };
  void run();
  void throw_failure();

  std::uint64_t room_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::uint64_t bytes_ = 0;  // of those, and of what is being written
  bool is_over_ = false;
  std::exception_ptr failure_;
  std::uint64_t dropped_ = 0;
  bool is_writing_ = false;
  double waited_s_ = 0;  // of the thread that adds
  std::thread thread_;
};

}  // namespace aloft

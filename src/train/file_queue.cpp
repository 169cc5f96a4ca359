#include "train/file_queue.h"

#include <utility>

#include "base/clock.h"
#include "base/process.h"

namespace aloft {

FileQueue::FileQueue(std::uint64_t room) : room_(room), thread_([this] { run(); }) {}

FileQueue::~FileQueue() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FileQueue::run() {
  lower_priority_of_thread();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    is_writing_ = true;
    const bool is_written = !failure_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (is_written) next.write();
    } catch (...) {
      failure = std::current_exception();
    }
    next.write = nullptr;  // its bytes go
    lock.lock();
    if (failure || !is_written) ++dropped_;
    if (failure) failure_ = std::move(failure);
    bytes_ -= next.bytes;
    is_writing_ = false;
    changed_.notify_all();
  }
}

void FileQueue::throw_failure() {
  if (failure_) std::rethrow_exception(failure_);
}

void FileQueue::add(std::uint64_t bytes, std::function<void()> write) {
  {
    std::unique_lock lock(mutex_);
    const double start = monotonic_seconds();
    changed_.wait(lock, [&] { return bytes_ == 0 || bytes_ + bytes <= room_; });
    waited_s_ += monotonic_seconds() - start;
    throw_failure();
    bytes_ += bytes;
    waiting_.push_back({bytes, std::move(write)});
  }
  changed_.notify_all();
}

std::uint64_t FileQueue::dropped() const {
  const std::scoped_lock lock(mutex_);
  return dropped_;
}

void FileQueue::wait() {
  std::unique_lock lock(mutex_);
  const double start = monotonic_seconds();
  changed_.wait(lock, [this] { return waiting_.empty() && !is_writing_; });
  waited_s_ += monotonic_seconds() - start;
  throw_failure();
}

}  // namespace aloft

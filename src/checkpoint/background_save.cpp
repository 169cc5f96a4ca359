#include "checkpoint/background_save.h"

#include <utility>

#include "base/error.h"
#include "base/process.h"

namespace aloft {

BackgroundSave::BackgroundSave(const CheckpointParts& parts, const Buffer& memory, Write write)
    : copy_(parts, memory), write_(std::move(write)), thread_([this] { run(); }) {}

BackgroundSave::~BackgroundSave() {
  {
    const std::scoped_lock lock(mutex_);
    is_dropped_ = true;
  }
  said_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// The copy is needed soon, and short; the rest has time.
void BackgroundSave::run() {
  try {
    copy_.finish();
    lower_priority_of_thread();
    write_(copy_.copied(), [this] { return wait_for_judgement(); });
  } catch (...) {
    failure_ = std::current_exception();
  }
  is_over_.store(true, std::memory_order_release);
}

std::string BackgroundSave::wait_for_judgement() {
  std::unique_lock lock(mutex_);
  said_.wait(lock, [this] { return problem_ || is_dropped_; });
  ensure(problem_.has_value(), "a checkpoint is judged before it is whole");
  return *problem_;
}

void BackgroundSave::judge(std::string problem) {
  is_judged_ = true;
  {
    const std::scoped_lock lock(mutex_);
    problem_ = std::move(problem);
  }
  said_.notify_all();
}

void BackgroundSave::wait() {
  ensure(is_judged_, "a checkpoint is judged before anybody waits for it");
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace aloft

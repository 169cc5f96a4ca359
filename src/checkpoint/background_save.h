// One checkpoint that is written while training goes on. The thread that trains begins it between
// two steps, finishes the copy before the state moves, says behind the next step how the state was,
// and hears at a later boundary what has become of it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "checkpoint/state_copy.h"

namespace aloft {

class BackgroundSave {
 public:
  // Writes a checkpoint of parts; asks behind the tensors for what is wrong with the state
  // (write_checkpoint()). Called in a thread of its own, which has a low priority by then.
  using Write =
      std::function<void(const CheckpointParts&, const std::function<std::string()>& problem)>;

  // `memory`: of StateCopy, whose own this is until the end.
  BackgroundSave(const CheckpointParts& parts, const Buffer& memory, Write write);
  // Waits. What nobody has judged is not written.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  std::int64_t step() const { return copy_.copied().meta.step; }
  // Behind it the state may move.
  void finish_copy() { copy_.finish(); }

  // What is wrong with the state that is saved; "": it is healthy. Once.
  void judge(std::string problem);
  bool is_judged() const { return is_judged_; }
  // Whether it is written, or cannot be: wait() takes no time.
  bool is_over() const { return is_over_.load(std::memory_order_acquire); }
  // Until then, judged before. Throws what kept it from being written.
  void wait();

 private:
  void run();
  std::string wait_for_judgement();

  StateCopy copy_;
  Write write_;
  std::mutex mutex_;
  std::condition_variable said_;
  std::optional<std::string> problem_;
  bool is_dropped_ = false;
  bool is_judged_ = false;  // of the thread that trains alone
  std::atomic<bool> is_over_ = false;
  std::exception_ptr failure_;  // read behind the thread's end
  std::thread thread_;
};

}  // namespace aloft

#include "backends/sim/compute_pool.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "backends/sim/own_thread.h"
#include "runtime/threads.h"

namespace aloft::sim {
namespace {

struct Job {
  int threads = 1;
  const std::function<void()>* work = nullptr;
  std::exception_ptr failure;
  bool is_done = false;
};

class ComputePool {
 public:
  ComputePool() : thread_([this] { loop(); }) { thread_.detach(); }

  void run(int threads, const std::function<void()>& work) {
    Job job{threads, &work, nullptr, false};
    std::unique_lock lock(mutex_);
    jobs_.push_back(&job);
    changed_.notify_all();
    changed_.wait(lock, [&] { return job.is_done; });
    if (job.failure) std::rethrow_exception(job.failure);
  }

 private:
  void loop() {
    is_own_thread = true;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !jobs_.empty(); });
      Job& job = *jobs_.front();
      jobs_.pop_front();
      lock.unlock();
      try {
        host_threads().set_count(job.threads);
        (*job.work)();
      } catch (...) {
        job.failure = std::current_exception();
      }
      lock.lock();
      job.is_done = true;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> jobs_;
  std::thread thread_;
};

}  // namespace

void compute(int threads, const std::function<void()>& work) {
  static ComputePool& pool = *new ComputePool;  // its thread ends with the process
  pool.run(threads, work);
}

}  // namespace aloft::sim

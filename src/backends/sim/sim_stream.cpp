#include "backends/sim/sim_stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "backends/sim/own_thread.h"
#include "backends/sim/sim_device.h"
#include "base/error.h"
#include "scalar/philox.h"

namespace aloft::sim {

bool SimEvent::has_happened() const {
  const std::lock_guard lock(mutex_);
  return has_happened_;
}

void SimEvent::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return has_happened_; });
  if (failure_) std::rethrow_exception(failure_);
}

void SimEvent::happen(double time, std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  has_happened_ = true;
  time_ = time;
  failure_ = std::move(failure);
  changed_.notify_all();
}

double SimEvent::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

SimStream::SimStream(SimDevice& device, int index, std::uint64_t delays)
    : device_(device), index_(index), delays_(delays), thread_([this] { loop(); }) {}

SimStream::~SimStream() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SimStream::push(Task task) {
  task.issued = device_.host_time();
  task.tellings = device_.tellings();
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void SimStream::enqueue(std::string name, double seconds, std::function<void()> work) {
  Task task;
  task.name = std::move(name);
  task.seconds = seconds;
  task.work = std::move(work);
  push(std::move(task));
}

void SimStream::loop() {
  is_own_thread = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    run(task);
    task = {};  // what it kept alive goes without the lock
    lock.lock();
  }
}

// A wait of up to 100 us before every fourth piece of work or so.
void SimStream::delay() {
  if (delays_ == 0) return;
  const std::uint32_t drawn = scalar::random_bits({delays_, 0, 0, 0}, ++delays_);
  if (drawn % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(drawn / 4 % 100));
}

void SimStream::run(Task& task) {
  delay();
  double begin = std::max(clock_, task.issued);
  const auto is_told = [&](const std::exception_ptr& failure) {
    return device_.is_told(failure, task.tellings);
  };
  if (failure_ && is_told(failure_)) failure_ = nullptr;
  if (const auto& other = task.waits_for.state()) {
    try {
      other->wait();
    } catch (...) {
      if (!failure_ && !is_told(std::current_exception())) failure_ = std::current_exception();
    }
    if (other->is_virtual()) begin = std::max(begin, other->time());
  }
  clock_ = begin + task.seconds;
  if (task.work && !failure_) {
    try {
      task.work();
    } catch (Error& e) {
      e.add_line("instr",
                 task.name + " (" + device_.name() + ", stream " + std::to_string(index_) + ")");
      failure_ = std::current_exception();
    } catch (...) {
      failure_ = std::current_exception();
    }
    device_.note({index_, task.name, begin, clock_});
  }
  if (!task.event) return;
  task.event->happen(clock_, failure_);
  if (task.takes_failure) failure_ = nullptr;
}

// An event that nobody waits for must not take an error with it.
Event SimStream::record() { return record(false); }

Event SimStream::record(bool takes_failure) {
  Task task;
  task.event = std::make_shared<SimEvent>();
  task.takes_failure = takes_failure;
  const Event event(task.event);
  push(std::move(task));
  return event;
}

void SimStream::wait(const Event& event) {
  const bool has_time = event.state() && event.state()->is_virtual();
  if (event.has_happened() && !has_time) return;
  Task task;
  task.waits_for = event;
  push(std::move(task));
}

void SimStream::synchronize() {
  const Event event = record(true);
  try {
    event.wait();
  } catch (...) {  // streams that waited for this one have the same failure
    device_.note_told(std::current_exception());
    throw;
  }
  device_.host_reaches(static_cast<const SimEvent&>(*event.state()).time());
}

void SimStream::copy(const Buffer& to, const Buffer& from, Before) {
  ensure(to.bytes() == from.bytes(), "a copy has the size of what is copied");
  if (to.bytes() == 0) return;
  for (const Buffer* b : {&from, &to})  // behind what another device was given to do
    if (&b->device() != &device_ && !b->device().map(*b->block()))
      wait(b->device().stream().record());
  const Buffer target = real_of(to), source = real_of(from);
  const bool stays = &from.device() == &device_ && from.space() == to.space();
  enqueue("copy", device_.copy_seconds(to.bytes(), stays),
          [target, source] { std::memcpy(target.address(), source.address(), target.bytes()); });
}

void SimStream::upload(const Buffer& to, const void* from) {
  if (to.bytes() == 0) return;
  const std::shared_ptr<std::byte[]> bytes(new std::byte[to.bytes()]);
  std::memcpy(bytes.get(), from, to.bytes());
  const Buffer target = device_.real(to);
  enqueue("upload", device_.copy_seconds(to.bytes(), false),
          [target, bytes] { std::memcpy(target.address(), bytes.get(), target.bytes()); });
}

void SimStream::download(void* to, const Buffer& from) {
  if (from.bytes() == 0) return;
  for (int s = 0; s < device_.features().streams; ++s)
    if (s != index_) wait(device_.stream(s).record());
  const Buffer source = device_.real(from);
  enqueue("download", device_.copy_seconds(from.bytes(), false),
          [to, source] { std::memcpy(to, source.address(), source.bytes()); });
  synchronize();
}

}  // namespace aloft::sim

// What the host does with each run of a program, beside the program: counts that it keeps in
// variables which no program reads, or for itself, gradients of backward() that it drops.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/buffer.h"
#include "types/variable.h"

namespace aloft {

struct HostCount {
  VariablePtr in = nullptr;                            // i32[]; null: `beside` has it
  std::function<std::int32_t(std::int32_t now)> next;  // throws where it forbids what comes
  std::int32_t before = 0;                             // of the run that is going on
  std::shared_ptr<std::int32_t> beside = nullptr;      // a number of the host's alone
  std::int32_t now() const { return in ? in->buffer->read_one<std::int32_t>() : *beside; }
  void set(std::int32_t count) const { in ? in->buffer->write_one(count) : void(*beside = count); }
};

// Changes the count: at once in eager mode, before each run of the program in a traced function.
// Where `next` throws, that program does not run and no count of it has changed.
void count_on_host(HostCount count);

// Drops the gradients that backward() left for `parameters` with the thread that calls: at once in
// eager mode, behind each run of the program in a traced function.
void forget_left_gradients(std::span<const VariablePtr> parameters);

struct HostPart {
  std::vector<HostCount> counts;
  std::vector<VariablePtr> forgotten;
};

// Where this thread's innermost trace collects them.
class HostPartScope {
 public:
  explicit HostPartScope(HostPart* into);
  ~HostPartScope();
  HostPartScope(const HostPartScope&) = delete;
  HostPartScope& operator=(const HostPartScope&) = delete;

 private:
  HostPart* saved_;
};

// One run's counts: made before it, they are taken back where it is not kept.
class CountedRun {
 public:
  explicit CountedRun(std::span<HostCount> counts);
  ~CountedRun() { take_back(); }
  CountedRun(const CountedRun&) = delete;
  CountedRun& operator=(const CountedRun&) = delete;
  void keep() { done_ = 0; }

 private:
  void take_back();
  std::span<HostCount> counts_;
  std::size_t done_ = 0;
};

}  // namespace aloft

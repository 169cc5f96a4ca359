// Counts that the host keeps over calls of programs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace aloft {

struct HostCount {
  std::shared_ptr<int> at;
  std::function<int(int now)> next;  // throws where the count forbids what comes
  int before = 0;                    // of the run that is going on
};

// Changes the count: at once in eager mode, before each run of the program in a traced function.
// Where `next` throws, that program does not run and no count of it has changed.
void count_on_host(HostCount count);

// Where this thread's innermost trace collects its counts.
class HostCountScope {
 public:
  explicit HostCountScope(std::vector<HostCount>* into);
  ~HostCountScope();
  HostCountScope(const HostCountScope&) = delete;
  HostCountScope& operator=(const HostCountScope&) = delete;

 private:
  std::vector<HostCount>* saved_;
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

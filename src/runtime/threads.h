// The host's threads: one pool, which the kernels of the CPU and loops over weights share. The CPU
// back end brings it (OpenMP); without it a loop runs on the thread that calls.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace aloft {

class Threads {
 public:
  virtual ~Threads() = default;
  // What a loop that the calling thread begins now is shared by; never a result's business.
  virtual int count() const { return 1; }
  // From now on, for loops that the calling thread begins.
  virtual void set_count(int) {}
  // Whose they are, for people: "OpenMP 201511".
  virtual std::string_view name() const { return "none"; }
  // body(i) for i in [0, n), in shares that lie together. Must not throw.
  virtual void for_each(std::int64_t n, const std::function<void(std::int64_t)>& body) {
    for (std::int64_t i = 0; i < n; ++i) body(i);
  }
};

Threads& host_threads();
// `threads` outlives the process's last use of it.
void set_host_threads(Threads& threads);

}  // namespace aloft

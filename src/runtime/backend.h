// A back end: an ordered table of kernels and a way to get memory. A folder under backends/
// exports one function that returns one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernel.h"

namespace aloft {

struct Choice {
  const Kernel* kernel = nullptr;     // null: no kernel takes the call
  std::vector<std::string> refusals;  // "cpu.matmul: f64 is not supported", fastest first
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Candidates for an op, fastest first. Empty: the op runs through its body.
  virtual std::vector<const Kernel*> candidates(Name op) const = 0;
  // 64-byte aligned, uninitialised. EnvironmentError E0401 where there is not enough.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) const = 0;
  // The same, all zero bytes. A back end whose system hands out zero pages overrides it, so that
  // memory is first touched by whoever works on it.
  virtual std::shared_ptr<void> allocate_zeroed(std::size_t bytes) const;
  // Gives what was freed, and is kept for later, back to the system.
  virtual void release_unused() const {}
};

// The first candidate that accepts, with the refusals of those before it.
Choice choose_kernel(const Backend& backend, const CallSpec& call);
// A kernel by name, for a Plan that recorded its choices; null where the back end lacks it.
const Kernel* find_kernel(const Backend& backend, Name op, std::string_view kernel);

}  // namespace aloft

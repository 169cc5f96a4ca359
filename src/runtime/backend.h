// A back end: a kind of processor, what it can do and an ordered table of kernels. A folder under
// backends/ exports one function that opens a device of its kind (runtime/device.h).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/kernel.h"
#include "types/capability.h"

namespace aloft {

struct Choice {
  const Kernel* kernel = nullptr;     // null: no kernel takes the call
  std::vector<std::string> refusals;  // "cpu.matmul: f64 is not supported", fastest first
};

// What a kind of processor can do.
struct Features {
  Capability capability;           // element types: which it stores, which it multiplies
  int streams = 1;                 // that work side by side
  bool is_asynchronous = false;    // work goes on when the call that hands it over has returned
  bool shares_host_memory = true;  // kernels work on any memory of the host: it has no other
  // Every buffer begins at a multiple of so many bytes. Plans lay out at multiples of 64: a device
  // that needs more runs none (E0412).
  std::size_t alignment = 64;
  struct SpaceSize {
    Space space = Space::Device;
    std::size_t bytes = 0;  // 0: no limit of its own
  };
  std::vector<SpaceSize> spaces = {{}};
  // Where the device says them itself; 0: who wants to know measures them. Floating-point
  // operations a second of products in f32 and in its low types; bytes a second of its own memory,
  // and between it and the host's; seconds that a kernel takes at least.
  double f32_flops = 0, low_flops = 0, memory_bandwidth = 0, host_bandwidth = 0;
  double launch_seconds = 0;
  bool is_simulated = false;  // what the host's clock says is how long the simulation takes
  // What else its kernels and their choice go by: instruction sets, the numbers of a profile. A
  // compiled program is good where this is the same (frontend/plan_cache.h).
  std::string variant = {};
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Candidates for an op, fastest first. Empty: the op runs through its body.
  virtual std::vector<const Kernel*> candidates(Name op) const = 0;
  // Why none of the op's candidates takes the call, whatever each says; nothing: they are asked.
  virtual std::optional<Refusal> refuses(const CallSpec& call) const {
    static_cast<void>(call);
    return std::nullopt;
  }
  // What the kernel makes of a call that it accepts: its own, unless the back end runs kernels in
  // its own way.
  virtual std::shared_ptr<const Prepared> prepare(const Kernel& kernel,
                                                  const CallSpec& call) const {
    return kernel.prepare(call);
  }
  virtual const Features& features() const = 0;
};

// The first candidate that accepts, with the refusals of those before it.
Choice choose_kernel(const Backend& backend, const CallSpec& call);
// A kernel by name, for a Plan that recorded its choices; null where the back end lacks it.
const Kernel* find_kernel(const Backend& backend, Name op, std::string_view kernel);

}  // namespace aloft

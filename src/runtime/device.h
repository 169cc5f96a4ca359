// A processor with its memory: what tensors lie on and programs run on. A value of every executor
// and eager session; several may work in one process, each with its own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend.h"
#include "runtime/buffer.h"
#include "runtime/kernel_cache.h"
#include "runtime/observer.h"
#include "runtime/stream.h"

namespace aloft {

class Device {
 public:
  explicit Device(const Backend& backend) : kernels_(backend) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // As it is asked for: "cpu", "sim:910B3".
  virtual std::string name() const = 0;
  const Backend& backend() const { return kernels_.backend(); }
  const Features& features() const { return backend().features(); }
  // Its prepared kernels, shared by eager calls and compiled programs. Thread-safe.
  KernelCache& kernels() { return kernels_; }

  // Who looks on at what it does.
  Observers& observers() { return observers_; }

  // Aligned as its features say, uninitialised or all zero bytes. EnvironmentError E0401 where
  // there is not enough. Thread-safe. Compiled programs ask for a block for each arena, in which
  // their buffers lie side by side; eager calls for one for each result.
  virtual Buffer allocate(std::size_t bytes, Space space = Space::Device) = 0;
  virtual Buffer allocate_zeroed(std::size_t bytes, Space space = Space::Device) = 0;
  // EnvironmentError E0401, exit status 4, where `bytes` for `what` can never be there, with both
  // numbers and `advice`. `given_back`: bytes in use now that go back on the way.
  virtual void need_memory(double bytes, std::string_view what, std::string_view advice,
                           double given_back = 0) const = 0;
  // Gives what was freed, and is kept for later, back to the system.
  virtual void release_unused() {}
  // Where the host finds a block of memory which it shares with the device, when what the device
  // was given to do is done; null where the host cannot reach it. The block may be of a class that
  // is not the device's: memory that somebody watches (exec/memory_check.h).
  virtual std::byte* map(const Block& block) = 0;
  // Below features().streams; 0 is where programs and eager calls run.
  virtual Stream& stream(int index = 0) = 0;
  // Until all streams have done what they were given.
  virtual void synchronize() = 0;

 private:
  KernelCache kernels_;
  Observers observers_;
};

}  // namespace aloft

#include "backends/cpu/host_device.h"

#include <cstring>

#include "backends/cpu/copy.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/memory.h"
#include "backends/cpu/parallel.h"
#include "backends/device_kind.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/threads.h"

namespace aloft {
namespace cpu {
namespace {

class HostBlock : public Block {
 public:
  HostBlock(Device& device, Space space, HostMemory memory, std::size_t bytes)
      : Block(device, space, memory.get(), bytes), memory_(std::move(memory)) {}

 private:
  HostMemory memory_;
};

}  // namespace

namespace {

// Now: everything has been done.
class Now : public Event::State {
 public:
  bool has_happened() const override { return true; }
  void wait() const override {}
  double time() const override { return time_; }

 private:
  double time_ = monotonic_seconds();
};

}  // namespace

Event HostStream::record() { return Event(std::make_shared<Now>()); }

void HostStream::copy(const Buffer& to, const Buffer& from, Before before) {
  ensure(to.bytes() == from.bytes(), "a copy has the size of what is copied");
  if (&to.device() != &from.device() && !to.device().map(*to.block()))
    return to.device().stream().upload(to, from.address());  // `from` may change behind this call
  auto* const at = static_cast<std::byte*>(to.address());
  if (!from.device().map(*from.block())) return from.device().stream().download(at, from);
  const auto* const source = static_cast<const std::byte*>(from.address());
  if (before == Before::Zeros)
    copy_to_zeros(at, source, to.bytes());
  else
    copy_bytes(at, source, to.bytes());
}

void HostStream::upload(const Buffer& to, const void* from) {
  if (to.bytes() > 0) std::memcpy(to.address(), from, to.bytes());
}

void HostStream::download(void* to, const Buffer& from) {
  if (from.bytes() > 0) std::memcpy(to, from.address(), from.bytes());
}

Buffer HostDevice::allocate(std::size_t bytes, Space space) {
  return Buffer(std::make_shared<HostBlock>(*this, space, allocate_aligned(bytes), bytes));
}

Buffer HostDevice::allocate_zeroed(std::size_t bytes, Space space) {
  return Buffer(std::make_shared<HostBlock>(*this, space, cpu::allocate_zeroed(bytes), bytes));
}

void HostDevice::need_memory(double bytes, std::string_view what, std::string_view advice,
                             double) const {
  aloft::need_memory(bytes, what, advice);
}

void HostDevice::release_unused() { cpu::release_unused(); }

namespace {

#define ALOFT_TEXT_OF(x) #x
#define ALOFT_TEXT(x) ALOFT_TEXT_OF(x)

// OpenMP's, whose number is a matter of the thread that asks.
class OpenMpThreads : public Threads {
 public:
  int count() const override { return pool_size(); }
  void set_count(int count) override { omp_set_num_threads(count); }
  std::string_view name() const override { return "OpenMP " ALOFT_TEXT(_OPENMP); }
  void for_each(std::int64_t n, const std::function<void(std::int64_t)>& body) override {
    for_each_chunk(n, body);
  }
};

}  // namespace
}  // namespace cpu

DeviceKind cpu_kind() {
  return {"cpu", "this machine's processor", {}, [](std::string_view name) -> Device& {
            if (name != "cpu")
              throw UserError("E0332", "there is one cpu device")
                  .saw(in_quotes(std::string(name)))
                  .need("cpu");
            return cpu_device();
          }};
}

Device& cpu_device() {
  static cpu::OpenMpThreads threads;
  static Device& device = []() -> Device& {
    set_host_threads(threads);
    // Never destroyed: tensors of static variables lie on it.
    return *new cpu::HostDevice(cpu_backend());
  }();
  return device;
}

}  // namespace aloft

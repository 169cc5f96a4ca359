// A device whose memory is the host's and whose work is done when the call returns.
#pragma once

#include <string>

#include "runtime/device.h"

namespace aloft::cpu {

// Its only stream: nothing waits.
class HostStream : public Stream {
 public:
  void copy(const Buffer& to, const Buffer& from, Before before) override;
  void upload(const Buffer& to, const void* from) override;
  void download(void* to, const Buffer& from) override;
  Event record() override;
  void wait(const Event& event) override { event.wait(); }
  void synchronize() override {}
};

class HostDevice : public Device {
 public:
  using Device::Device;

  std::string name() const override { return std::string(backend().name()); }
  Buffer allocate(std::size_t bytes, Space space = Space::Device) override;
  Buffer allocate_zeroed(std::size_t bytes, Space space = Space::Device) override;
  void need_memory(double bytes, std::string_view what, std::string_view advice,
                   double given_back) const override;
  void release_unused() override;
  std::byte* map(const Block& block) override { return static_cast<std::byte*>(block.address()); }
  Stream& stream(int) override { return stream_; }
  void synchronize() override {}

 private:
  HostStream stream_;
};

}  // namespace aloft::cpu

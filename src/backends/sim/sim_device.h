// A device in software: asynchronous streams, events and memory that the host cannot touch, as of
// an accelerator, with the kernels of the CPU underneath. So what runs on it gives the bits of the
// CPU, and what would be wrong on an accelerator (a pointer followed, a wait forgotten, memory read
// before it was copied) is found without one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/sim/address_space.h"
#include "backends/sim/profile.h"
#include "backends/sim/sim_stream.h"
#include "runtime/device.h"

namespace aloft::sim {

struct SimOptions {
  Profile profile;
  std::uint64_t delays = 0;  // a seed: its threads wait at random now and then; 0: never
};

// What a device's name says: "sim", "sim:910B3", "sim:H100,memory=1GiB,delays=7",
// "sim:my/profile.toml". UserError E0332.
SimOptions parse_sim(std::string_view name);

class SimDevice : public Device {
 public:
  // `underneath` runs the kernels; its memory is the host's.
  SimDevice(std::string name, SimOptions options, Device& underneath);
  ~SimDevice() override;

  std::string name() const override { return name_; }
  Buffer allocate(std::size_t bytes, Space space = Space::Device) override;
  Buffer allocate_zeroed(std::size_t bytes, Space space = Space::Device) override;
  void need_memory(double bytes, std::string_view what, std::string_view advice,
                   double given_back) const override;
  std::byte* map(const Block& block) override;
  Stream& stream(int index = 0) override;
  void synchronize() override;

  const Profile& profile() const { return options_.profile; }
  // The real memory of a buffer of this device. InternalError where it was not allocated here, or
  // is free.
  Buffer real(const Buffer& buffer) const;
  Buffer real(const void* address, std::size_t bytes) const;
  // A block of the host's space, with the real memory behind it, until it is freed.
  void add_host_block(const Block& block, const Buffer& real);
  void remove_host_block(const Block& block);

  // Virtual seconds: of a copy of so many bytes, within its own memory or from or to the host's; up
  // to when the host has waited.
  double copy_seconds(std::size_t bytes, bool stays) const;
  double host_time() const;
  // A failure that a wait has told the host: what is issued from then on goes on without it.
  void note_told(std::exception_ptr failure);
  std::size_t tellings() const;  // so far
  // Whether it is among the first `tellings`.
  bool is_told(const std::exception_ptr& failure, std::size_t tellings) const;
  void host_reaches(double time);
  // What was done so far, in the order in which it ended, and no longer kept.
  std::vector<Span> take_timeline();
  void note(Span span);

 private:
  [[noreturn]] void refuse_block(std::size_t bytes) const;
  void ask_for_room(std::size_t bytes, Space space) const;
  Buffer block(Buffer real, Space space);

  const std::string name_;
  const SimOptions options_;
  Device& underneath_;
  AddressSpace addresses_;
  mutable std::mutex mutex_;
  std::map<const Block*, Buffer> host_blocks_;
  double host_time_ = 0;
  std::vector<std::exception_ptr> told_;
  std::vector<Span> timeline_;
  std::vector<std::unique_ptr<SimStream>> streams_;  // end first
};

// The memory of the host that lies behind a buffer of any device of the process.
Buffer real_of(const Buffer& buffer);

}  // namespace aloft::sim

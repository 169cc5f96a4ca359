// The software device's memory: addresses that lie in a reserved range which nobody may touch, so
// that every stray access by the host faults, and real memory behind them that only the device's
// kernels see. An address that was freed is not given again for long, so that its late use is
// found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/buffer.h"

namespace aloft::sim {

class AddressSpace {
 public:
  // `limit` bytes at most; 0: none. EnvironmentError E0401 where the range cannot be reserved.
  explicit AddressSpace(std::size_t limit);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Whether the limit allows so many bytes more.
  bool has_room(std::size_t bytes) const;
  // Gives `real` an address; false where the limit does not allow it. Thread-safe, as all here.
  bool add(const Buffer& real, void** address);
  void remove(const void* address);
  // The real memory of `bytes` at a device's address, kept alive by the buffer; empty where they
  // are not inside what is allocated.
  Buffer find(const void* address, std::size_t bytes) const;

  std::size_t limit() const { return limit_; }
  std::size_t capacity() const;  // the limit, or where there is none what addresses allow
  std::size_t used() const;

 private:
  bool fits(std::size_t bytes) const { return limit_ == 0 || bytes <= limit_ - used_; }
  std::byte* next_gap(std::size_t bytes) const;

  const std::size_t limit_;
  std::byte* base_ = nullptr;
  mutable std::mutex mutex_;
  std::map<const std::byte*, Buffer> blocks_;  // by address
  std::byte* cursor_ = nullptr;
  std::size_t used_ = 0;
};

}  // namespace aloft::sim

// Memory of a device, and the only doors to it from the host: read() and write(). Where a device's
// memory is the host's, a door is a pointer to it and nothing is copied; elsewhere reading waits
// for what the device was given to do and copies, and writing copies behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "types/space.h"

namespace aloft {

class Buffer;
class Device;
struct Place;  // exec/place.h

// One allocation. Devices derive from it and free it with the last buffer that lies in it.
class Block {
 public:
  Block(Device& device, Space space, void* address, std::size_t bytes)
      : device_(device), space_(space), address_(address), bytes_(bytes) {}
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Device& device() const { return device_; }
  Space space() const { return space_; }
  void* address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  // Of one that is kept in parts (runtime/sharded_block.h), what it consists of, in order.
  virtual std::span<const Buffer> parts() const { return {}; }

  // Alive while programs count on the variables in this block staying in it; whose they are.
  std::weak_ptr<Place> place;

 private:
  Device& device_;
  Space space_;
  void* address_;
  std::size_t bytes_;
};

// What the host reads: elements that stay there as long as this lives, in the device's memory or in
// a copy of it.
template <class T>
class HostRead : public std::span<const T> {
 public:
  HostRead(std::span<const T> values, std::shared_ptr<const void> keep)
      : std::span<const T>(values), keep_(std::move(keep)) {}
  // Of two reads the begin of one and the end of the other are no range: give it a name.
  auto begin() const& { return std::span<const T>::begin(); }
  auto end() const& { return std::span<const T>::end(); }
  void begin() const&& = delete;
  void end() const&& = delete;

 private:
  std::shared_ptr<const void> keep_;
};

// What the host writes: all of it must be written, then it ends and the device has it.
template <class T>
class HostWrite : public std::span<T> {
 public:
  HostWrite(std::span<T> values, std::shared_ptr<void> commit)
      : std::span<T>(values), commit_(std::move(commit)) {}
  HostWrite(HostWrite&&) noexcept = default;
  HostWrite& operator=(HostWrite&&) noexcept = default;
  HostWrite(const HostWrite&) = delete;
  HostWrite& operator=(const HostWrite&) = delete;

 private:
  std::shared_ptr<void> commit_;  // its end sends what was staged
};

// A range of a block. Copies are the same memory; an empty one is none.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::shared_ptr<Block> block);  // all of it
  explicit operator bool() const { return block_ != nullptr; }

  Device& device() const { return block_->device(); }
  Space space() const { return block_->space(); }
  std::size_t bytes() const { return bytes_; }
  const std::shared_ptr<Block>& block() const { return block_; }
  // Where it begins, for the device's kernels. The host never follows it: folders above exec do not
  // ask for it.
  void* address() const { return static_cast<std::byte*>(block_->address()) + offset_; }
  // Whether both begin at the same byte of the same device.
  bool is_at(const Buffer& other) const {
    return block_ && other.block_ && address() == other.address();
  }
  // `bytes` from byte `offset` on; must lie inside (InternalError).
  Buffer part(std::size_t offset, std::size_t bytes) const;

  // The elements, or `count` of them from `first` on, once everything that the device was given to
  // do before is done: errors of that come out here.
  template <class T>
  HostRead<T> read() const {
    return read<T>(0, bytes_ / sizeof(T));
  }
  template <class T>
  HostRead<T> read(std::size_t first, std::size_t count) const {
    const auto [data, keep] = read_bytes(in_bytes<T>(first), in_bytes<T>(count));
    return {{static_cast<const T*>(data), count}, keep};
  }
  // One element, copied.
  template <class T>
  T read_one(std::size_t index = 0) const {
    T value;
    read_into(std::as_writable_bytes(std::span(&value, 1)), in_bytes<T>(index));
    return value;
  }
  // As many bytes as `to` has, from byte `offset` on.
  void read_into(std::span<std::byte> to, std::size_t offset = 0) const;
  // Elements to write, behind everything that the device was given to do before. What they are
  // before that is not said: each must be written.
  template <class T>
  HostWrite<T> write() const {
    return write<T>(0, bytes_ / sizeof(T));
  }
  template <class T>
  HostWrite<T> write(std::size_t first, std::size_t count) const {
    const auto [data, commit] = write_bytes(in_bytes<T>(first), in_bytes<T>(count));
    return {{static_cast<T*>(data), count}, commit};
  }
  // The same, and what is not written stays as it is.
  template <class T>
  HostWrite<T> edit() const {
    return edit<T>(0, bytes_ / sizeof(T));
  }
  template <class T>
  HostWrite<T> edit(std::size_t first, std::size_t count) const {
    const auto [data, commit] = write_bytes(in_bytes<T>(first), in_bytes<T>(count), true);
    return {{static_cast<T*>(data), count}, commit};
  }
  template <class T>
  void write_one(const T& value, std::size_t index = 0) const {
    write_from(std::as_bytes(std::span(&value, 1)), in_bytes<T>(index));
  }
  // All of `from`, from byte `offset` on.
  void write_from(std::span<const std::byte> from, std::size_t offset = 0) const;
  // All bytes become zero.
  void zero() const;

 private:
  void check(std::size_t offset, std::size_t bytes) const;
  // More than there can be of so many that it would wrap.
  template <class T>
  static constexpr std::size_t in_bytes(std::size_t elements) {
    return elements > SIZE_MAX / sizeof(T) ? SIZE_MAX : elements * sizeof(T);
  }
  std::byte* mapped(std::size_t offset) const;  // null where the host cannot reach it
  std::pair<const void*, std::shared_ptr<const void>> read_bytes(std::size_t offset,
                                                                 std::size_t bytes) const;
  std::pair<void*, std::shared_ptr<void>> write_bytes(std::size_t offset, std::size_t bytes,
                                                      bool with_values = false) const;

  std::shared_ptr<Block> block_;
  std::size_t offset_ = 0, bytes_ = 0;
};

}  // namespace aloft

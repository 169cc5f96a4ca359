// Memory between two pages that nobody may touch, for checking: what reads or writes outside it
// faults at once on one side, and on the other leaves a mark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace aloft {

class GuardedMemory {
 public:
  // The side on which the first byte outside lies on a guard page. Data stays 64-byte aligned: at
  // the back that holds to the byte for sizes that are multiples of 64.
  enum class Side : std::uint8_t { Front, Back };

  // All bytes, inside and around, are set to `fill`. EnvironmentError E0401.
  GuardedMemory(std::size_t bytes, Side side, std::uint8_t fill);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // Offset from data() of a byte around the data that was written; none if all are as they were.
  std::optional<std::ptrdiff_t> damage() const;
  // First and one past the last byte, guard pages included.
  std::pair<const std::byte*, const std::byte*> range() const { return {base_, base_ + mapped_}; }
  // While closed, every access faults. EnvironmentError E0401 where the system refuses.
  void close();
  void open();

 private:
  void protect(int access);

  std::byte* base_ = nullptr;  // of the mapping, a guard page first
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint8_t fill_ = 0;
};

}  // namespace aloft

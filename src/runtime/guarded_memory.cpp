#include "runtime/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"

namespace aloft {
namespace {

constexpr std::size_t kLine = 64;

std::size_t page() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Addresses of memory that is gone, closed to all: the next mapping would take the very same place,
// and a kernel that remembers an old pointer would not be found.
class Retired {
 public:
  void add(std::byte* base, std::size_t bytes) {
    // Gives the memory back and keeps the addresses.
    if (mmap(base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
             0) == MAP_FAILED) {
      munmap(base, bytes);
      return;
    }
    const std::lock_guard lock(mutex_);
    Range& oldest = ranges_[next_];
    next_ = (next_ + 1) % ranges_.size();
    if (oldest.base) munmap(oldest.base, oldest.bytes);
    oldest = {base, bytes};
  }

 private:
  struct Range {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
  };
  std::mutex mutex_;
  std::array<Range, 256> ranges_;  // far fewer than the mappings a process may have
  std::size_t next_ = 0;
};

Retired& retired() {
  static Retired all;
  return all;
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes, Side side, std::uint8_t fill)
    : bytes_(bytes), fill_(fill) {
  const std::size_t inside = round_up(bytes, page());
  mapped_ = inside + 2 * page();
  void* base = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    throw EnvironmentError("E0401", "not enough memory")
        .need(std::to_string(mapped_) + " bytes in one block")
        .advice("a smaller model: a memory check holds much twice");
  base_ = static_cast<std::byte*>(base);
  data_ = base_ + page();
  try {
    open();
  } catch (...) {  // no destructor runs for what was never made
    munmap(base_, mapped_);
    throw;
  }
  if (inside > 0) std::memset(data_, fill, inside);
  if (side == Side::Back) data_ += inside - round_up(bytes, kLine);
}

GuardedMemory::~GuardedMemory() {
  if (base_) retired().add(base_, mapped_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      mapped_(other.mapped_),
      data_(other.data_),
      bytes_(other.bytes_),
      fill_(other.fill_) {}

std::optional<std::ptrdiff_t> GuardedMemory::damage() const {
  const std::byte fill{fill_};
  // From the data outwards, so that the nearest byte is named.
  for (const std::byte* b = data_ + bytes_; b < base_ + mapped_ - page(); ++b)
    if (*b != fill) return b - data_;
  for (const std::byte* b = data_; b > base_ + page(); --b)
    if (b[-1] != fill) return b - 1 - data_;
  return std::nullopt;
}

void GuardedMemory::protect(int access) {
  if (mapped_ <= 2 * page()) return;
  if (mprotect(base_ + page(), mapped_ - 2 * page(), access) != 0)
    throw EnvironmentError("E0401", "the system does not change the access to memory")
        .saw(std::strerror(errno))
        .advice("a smaller model, or a higher limit of mappings (vm.max_map_count)");
}

void GuardedMemory::close() { protect(PROT_NONE); }

void GuardedMemory::open() { protect(PROT_READ | PROT_WRITE); }

}  // namespace aloft

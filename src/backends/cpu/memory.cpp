#include "backends/cpu/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"

namespace aloft::cpu {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

[[noreturn]] void no_memory(std::size_t bytes) {
  throw EnvironmentError("E0401", "not enough memory")
      .need(std::to_string(bytes) + " bytes in one block")
      .advice("a smaller batch or a lower precision; `ulimit -v` may also be the limit");
}

// Pages of the system that begin at a huge page; null where there are none. The last huge page may
// be a part: it then consists of small ones.
HostMemory map_pages(std::size_t bytes) {
  const std::size_t whole = round_up(bytes, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  void* p =
      mmap(nullptr, whole + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto* const base = static_cast<std::byte*>(p);
  const std::size_t skip = round_up(reinterpret_cast<std::uintptr_t>(base), kHugePage) -
                           reinterpret_cast<std::uintptr_t>(base);
  if (skip > 0) munmap(base, skip);
  if (skip < kHugePage) munmap(base + skip + whole, kHugePage - skip);
  // Advice only: without huge pages the memory is as good, somewhat slower.
  madvise(base + skip, whole, MADV_HUGEPAGE);
  return {base + skip, GiveBack{whole}};
}

}  // namespace

void GiveBack::operator()(void* block) const {
  if (mapped > 0)
    munmap(block, mapped);
  else
    std::free(block);
}

HostMemory allocate_aligned(std::size_t bytes) {
  // From this size on, huge pages save more in address translation than they waste.
  const bool large = bytes >= 4 * kHugePage;
  const std::size_t alignment = large ? kHugePage : kLine;
  void* p = nullptr;
  if (bytes <= SIZE_MAX / 2) {
    const std::size_t whole = round_up(std::max(bytes, kLine), alignment);
    p = std::aligned_alloc(alignment, whole);
    // Advice only: without huge pages the memory is as good, somewhat slower.
    if (p != nullptr && large) madvise(p, whole, MADV_HUGEPAGE);
  }
  if (p == nullptr) no_memory(bytes);
  return {p, GiveBack{}};
}

HostMemory allocate_zeroed(std::size_t bytes) {
  if (bytes < kHugePage) {
    HostMemory block = allocate_aligned(bytes);
    std::memset(block.get(), 0, bytes);
    return block;
  }
  HostMemory block = bytes <= SIZE_MAX / 2 ? map_pages(bytes) : nullptr;
  if (block == nullptr) no_memory(bytes);
  return block;
}

void release_unused() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace aloft::cpu

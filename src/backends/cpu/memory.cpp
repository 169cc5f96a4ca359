#include "backends/cpu/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"

namespace aloft::cpu {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

std::shared_ptr<void> allocate_aligned(std::size_t bytes) {
  // From this size on, huge pages save more in address translation than they waste.
  const bool large = bytes >= 4 * kHugePage;
  const std::size_t alignment = large ? kHugePage : kLine;
  void* p = nullptr;
  if (bytes <= SIZE_MAX / 2) {
    const std::size_t whole = (std::max(bytes, kLine) + alignment - 1) / alignment * alignment;
    p = std::aligned_alloc(alignment, whole);
    // Advice only: without huge pages the memory is as good, somewhat slower.
    if (p != nullptr && large) madvise(p, whole, MADV_HUGEPAGE);
  }
  if (p == nullptr)
    throw EnvironmentError("E0401", "not enough memory")
        .need(std::to_string(bytes) + " bytes in one block")
        .advice("a smaller batch or a lower precision; `ulimit -v` may also be the limit");
  return {p, std::free};
}

}  // namespace aloft::cpu

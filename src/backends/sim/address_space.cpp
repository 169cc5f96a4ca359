#include "backends/sim/address_space.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"

namespace aloft::sim {
namespace {

constexpr std::size_t kRange = std::size_t{1} << 37;  // addresses, not memory
constexpr std::size_t kGap = 4096;  // between blocks: what runs past one meets none
constexpr std::size_t kAlignment = 64;

std::size_t taken_by(const Buffer& real) {
  return (std::max<std::size_t>(real.bytes(), 1) + kAlignment - 1) / kAlignment * kAlignment + kGap;
}

}  // namespace

AddressSpace::AddressSpace(std::size_t limit) : limit_(limit) {
  void* const range =
      mmap(nullptr, kRange, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    throw EnvironmentError("E0401", "the addresses of a software device cannot be reserved")
        .need(std::to_string(kRange) + " bytes of addresses, without memory behind them")
        .advice("fewer software devices in one process; `ulimit -v` may be the limit, too");
  base_ = cursor_ = static_cast<std::byte*>(range);
}

AddressSpace::~AddressSpace() { munmap(base_, kRange); }

// From the cursor on, and once more from the beginning.
std::byte* AddressSpace::next_gap(std::size_t bytes) const {
  std::byte* at = cursor_;
  for (int round = 0; round < 2; ++round, at = base_) {
    auto next = blocks_.lower_bound(at);
    if (next != blocks_.begin()) {
      const auto before = std::prev(next);
      at = std::max(at, const_cast<std::byte*>(before->first) + taken_by(before->second));
    }
    for (; next != blocks_.end() && at + bytes > next->first; ++next)
      at = const_cast<std::byte*>(next->first) + taken_by(next->second);
    if (at + bytes <= base_ + kRange) return at;
  }
  return nullptr;
}

bool AddressSpace::has_room(std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  return fits(bytes);
}

bool AddressSpace::add(const Buffer& real, void** address) {
  const std::lock_guard lock(mutex_);
  if (!fits(real.bytes())) return false;
  std::byte* const at = next_gap(taken_by(real));
  if (!at) return false;
  cursor_ = at + taken_by(real);
  used_ += real.bytes();
  blocks_.emplace(at, real);
  *address = at;
  return true;
}

std::size_t AddressSpace::capacity() const { return limit_ > 0 ? limit_ : kRange; }

void AddressSpace::remove(const void* address) {
  Buffer freed;  // behind the lock
  const std::lock_guard lock(mutex_);
  const auto it = blocks_.find(static_cast<const std::byte*>(address));
  if (it == blocks_.end()) return;
  used_ -= it->second.bytes();
  freed = std::move(it->second);
  blocks_.erase(it);
}

Buffer AddressSpace::find(const void* address, std::size_t bytes) const {
  const auto* const at = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex_);
  auto it = blocks_.upper_bound(at);
  if (it == blocks_.begin()) return {};
  --it;
  const auto offset = static_cast<std::size_t>(at - it->first);
  const Buffer& real = it->second;
  if (offset > real.bytes() || bytes > real.bytes() - offset) return {};
  return real.part(offset, bytes);
}

std::size_t AddressSpace::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace aloft::sim

// Pairs of tokens to what they merge to: an open table, looked up some times for every character of
// a new word.
#pragma once

#include <cstdint>
#include <vector>

namespace aloft::parts {

struct Merge {
  std::int32_t rank = -1, result = -1;  // rank -1: they do not merge
};

class PairTable {
 public:
  explicit PairTable(std::size_t pairs = 0) {
    std::size_t size = 16;
    while (size < pairs * 2) size *= 2;
    slots_.resize(size);
  }

  // A pair that comes twice keeps what it was given last.
  void put(std::int32_t left, std::int32_t right, Merge merge) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place_of(key_of(left, right))];
    count_ += slot.key == kFree;
    slot = {key_of(left, right), merge};
  }

  Merge find(std::int32_t left, std::int32_t right) const {
    const Slot& slot = slots_[place_of(key_of(left, right))];
    return slot.key == kFree ? Merge{} : slot.merge;
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // ids are not negative
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t place_of(std::uint64_t key) const {
    std::uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    std::size_t at = (mixed ^ mixed >> 32) & (slots_.size() - 1);
    while (slots_[at].key != kFree && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.key != kFree) slots_[place_of(slot.key)] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace aloft::parts

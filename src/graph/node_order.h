// The order in which a graph's nodes execute: a linked list of their numbers. Inserting anywhere,
// erasing, and asking which of two comes first take the same time however many there are.
#pragma once

#include <cstdint>
#include <vector>

namespace aloft {

class NodeOrder {
 public:
  // Node `n`, which is one more than the last that was added, comes last, or before `before`.
  void append(std::uint32_t n);
  void insert(std::uint32_t n, std::uint32_t before);
  void erase(std::uint32_t n);
  // All of these, and no others, in another order.
  void rearrange(const std::vector<std::uint32_t>& order);

  bool comes_before(std::uint32_t a, std::uint32_t b) const { return at_[a].rank < at_[b].rank; }
  const std::vector<std::uint32_t>& list() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct At {
    std::uint32_t previous = kNone, next = kNone;
    std::uint64_t rank = 0;  // grows along the list, with room for what is inserted
  };
  void link(std::uint32_t n, std::uint32_t previous, std::uint32_t next);
  void rank_anew();

  std::vector<At> at_;  // by node
  std::uint32_t first_ = kNone, last_ = kNone;
  mutable std::vector<std::uint32_t> list_;  // what list() shows, once it was asked for
  mutable bool is_listed_ = true;
};

}  // namespace aloft

#include "graph/node_order.h"

#include <algorithm>

#include "base/error.h"

namespace aloft {
namespace {
// Between neighbours; what is inserted takes no more than a step, so that a million nodes fit
// before the same one, as a pass emits them, before ranks are given anew.
constexpr std::uint64_t kRoom = std::uint64_t{1} << 32, kStep = std::uint64_t{1} << 12;
}  // namespace

void NodeOrder::append(std::uint32_t n) {
  link(n, last_, kNone);
  if (is_listed_) list_.push_back(n);
}

void NodeOrder::insert(std::uint32_t n, std::uint32_t before) {
  link(n, at_[before].previous, before);
  is_listed_ = false;
}

void NodeOrder::link(std::uint32_t n, std::uint32_t previous, std::uint32_t next) {
  ensure(n == at_.size(), "nodes are numbered as they are added");
  at_.push_back({previous, next, 0});
  (previous == kNone ? first_ : at_[previous].next) = n;
  (next == kNone ? last_ : at_[next].previous) = n;
  const std::uint64_t low = previous == kNone ? 0 : at_[previous].rank;
  const std::uint64_t room = next == kNone ? 2 * kRoom : at_[next].rank - low;
  at_[n].rank = low + (next == kNone ? kRoom : std::min(room / 2, kStep));
  if (room < 2) rank_anew();
}

void NodeOrder::rank_anew() {
  std::uint64_t rank = 0;
  for (std::uint32_t n = first_; n != kNone; n = at_[n].next) at_[n].rank = rank += kRoom;
}

void NodeOrder::erase(std::uint32_t n) {
  const At at = at_[n];
  (at.previous == kNone ? first_ : at_[at.previous].next) = at.next;
  (at.next == kNone ? last_ : at_[at.next].previous) = at.previous;
  is_listed_ = false;
}

void NodeOrder::rearrange(const std::vector<std::uint32_t>& order) {
  std::vector<bool> is_there(at_.size(), false);
  for (std::uint32_t n : list()) is_there[n] = true;
  bool same = order.size() == list().size();
  for (std::uint32_t n : order) {
    same = same && n < at_.size() && is_there[n];
    if (same) is_there[n] = false;
  }
  ensure(same, "an order holds the graph's nodes");
  first_ = last_ = kNone;
  for (std::uint32_t n : order) {
    at_[n].previous = last_;
    at_[n].next = kNone;
    (last_ == kNone ? first_ : at_[last_].next) = n;
    last_ = n;
  }
  rank_anew();
  list_ = order;
  is_listed_ = true;
}

const std::vector<std::uint32_t>& NodeOrder::list() const {
  if (!is_listed_) {
    list_.clear();
    for (std::uint32_t n = first_; n != kNone; n = at_[n].next) list_.push_back(n);
    is_listed_ = true;
  }
  return list_;
}

}  // namespace aloft

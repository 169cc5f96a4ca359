#include "plan/occupancy.h"

#include <algorithm>
#include <bit>

namespace aloft {

void OffsetRanges::add(std::size_t begin, std::size_t end) {
  auto next = end_of_.upper_bound(begin);
  if (next != end_of_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != end_of_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = end_of_.erase(next);
  }
  end_of_.emplace_hint(next, begin, end);
}

std::size_t OffsetRanges::free_from(std::size_t from, std::size_t bytes,
                                    std::int64_t& looks) const {
  ++looks;
  auto next = end_of_.upper_bound(from);
  if (next != end_of_.begin()) from = std::max(from, std::prev(next)->second);
  for (; next != end_of_.end() && next->first < from + bytes; ++next) {
    from = next->second;
    ++looks;
  }
  return from;
}

Occupancy::Occupancy(int times)
    : times_(times), nodes_(2 * std::bit_ceil(static_cast<std::size_t>(std::max(times, 1)))) {}

void Occupancy::take(int first, int last, std::size_t offset, std::size_t bytes) {
  take(all(), first, last, offset, offset + bytes);
}

void Occupancy::take(const Span& span, int first, int last, std::size_t offset, std::size_t end) {
  if (!span.meets(first, last)) return;
  nodes_[span.node].somewhere.add(offset, end);
  if (span.lies_within(first, last)) {
    nodes_[span.node].throughout.add(offset, end);
    return;
  }
  take(span.left(), first, last, offset, end);
  take(span.right(), first, last, offset, end);
}

void Occupancy::collect(const Span& span, int first, int last,
                        std::vector<const OffsetRanges*>& ranges) const {
  if (!span.meets(first, last)) return;
  if (span.lies_within(first, last)) {
    ranges.push_back(&nodes_[span.node].somewhere);
    return;
  }
  ranges.push_back(&nodes_[span.node].throughout);
  collect(span.left(), first, last, ranges);
  collect(span.right(), first, last, ranges);
}

std::size_t Occupancy::lowest_gap(int first, int last, std::size_t bytes) {
  asked_.clear();
  collect(all(), first, last, asked_);
  std::size_t at = 0;
  // Until every one of them agrees.
  for (std::size_t i = 0, agreed = 0; agreed < asked_.size(); i = (i + 1) % asked_.size()) {
    const std::size_t free = asked_[i]->free_from(at, bytes, looks_);
    agreed = free == at ? agreed + 1 : 1;
    at = free;
  }
  return at;
}

}  // namespace aloft

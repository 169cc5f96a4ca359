// Memory over time, as far as it is taken: answers where the lowest gap is that stays free between
// two points of time, without looking at each of the buffers that are alive between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace aloft {

// Ranges of offsets; those that touch are one.
class OffsetRanges {
 public:
  void add(std::size_t begin, std::size_t end);
  // The lowest offset from `from` on where `bytes` bytes meet no range; adds to `looks` how many it
  // looked at.
  std::size_t free_from(std::size_t from, std::size_t bytes, std::int64_t& looks) const;

 private:
  std::map<std::size_t, std::size_t> end_of_;  // by where they begin
};

// A tree of halves of the time. Each of its nodes knows what is taken all through its time, and
// what is at some point of it; a stretch of time is made of a few nodes and what lies above them.
// Buffers that lie side by side, as those of a model's layers do, make one range.
class Occupancy {
 public:
  // Points of time are 0 to `times` - 1.
  explicit Occupancy(int times);

  // `bytes` bytes, not 0, of which nothing is taken at the points `first` to `last`, both included.
  std::size_t lowest_gap(int first, int last, std::size_t bytes);
  void take(int first, int last, std::size_t offset, std::size_t bytes);
  // Ranges and nodes that all questions so far have looked at: what they cost.
  std::int64_t looks() const { return looks_; }

 private:
  struct Node {
    OffsetRanges throughout, somewhere;
  };
  // A node, and the points of time [from, to) that are its own.
  struct Span {
    std::size_t node;
    int from, to;
    bool meets(int first, int last) const { return from <= last && first < to; }
    bool lies_within(int first, int last) const { return first <= from && to <= last + 1; }
    Span left() const { return {2 * node, from, (from + to) / 2}; }
    Span right() const { return {2 * node + 1, (from + to) / 2, to}; }
  };
  Span all() const { return {1, 0, times_}; }
  void take(const Span& span, int first, int last, std::size_t offset, std::size_t end);
  void collect(const Span& span, int first, int last,
               std::vector<const OffsetRanges*>& ranges) const;

  int times_;
  std::vector<Node> nodes_;
  std::vector<const OffsetRanges*> asked_;  // kept between questions
  std::int64_t looks_ = 0;
};

}  // namespace aloft

// The state of a placement by search: per section of time the floor above which all that is still
// to be placed there must start, per block the lowest offset that the floors leave it, and for each
// floor the decisions it follows from. Every step can be taken back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace aloft {

// A buffer over sections [from, to): stretches of time between which nothing begins or ends.
struct Block {
  int from, to, size;  // size in units of kAlignment
  bool meets(const Block& o) const { return from < o.to && o.from < to; }
};

// A set of decisions (placements), by their depth in the search.
class Decisions {
 public:
  explicit Decisions(std::size_t count = 0) : words_(count / 64 + 1, 0) {}
  bool has(int d) const { return words_[d / 64] >> (d % 64) & 1; }
  void insert(int d) { words_[d / 64] |= std::uint64_t{1} << (d % 64); }
  void erase(int d) { words_[d / 64] &= ~(std::uint64_t{1} << (d % 64)); }
  void insert(const Decisions& o) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= o.words_[i];
  }
  void clear() { words_.assign(words_.size(), 0); }

 private:
  std::vector<std::uint64_t> words_;
};

class Skyline {
 public:
  static constexpr int kNever = std::numeric_limits<int>::max() / 2;

  Skyline(std::vector<Block> blocks, int sections, int capacity);

  int count() const { return static_cast<int>(blocks_.size()); }
  int sections() const { return static_cast<int>(floor_.size()); }
  const Block& block(int b) const { return blocks_[b]; }
  std::span<const int> covering(int section) const { return covering_[section]; }
  bool is_placed(int b) const { return placed_[b]; }
  int floor(int section) const { return floor_[section]; }
  // The lowest offset of an unplaced block.
  int rest(int b) const { return rest_[b]; }
  // What is still to be placed in a section, and the room above its floor that it will not fill.
  int use(int section) const { return use_[section]; }
  int slack(int section) const { return capacity_ - floor_[section] - use_[section]; }
  // What the floor of a section, and the rest of a block, follow from.
  const Decisions& why_floor(int section) const { return why_[section]; }
  const Decisions& why_rest(int b) const { return why_[held_by_[b]]; }

  // Each is false where some block then has no room left; conflict() says from which decisions on.
  bool check_all();
  bool place(int b, int at, int decision);  // decision number `decision`: block b starts at `at`
  bool raise(int section, int floor, const Decisions& why);
  const Decisions& conflict() const { return conflict_; }

  std::size_t mark() const { return changes_.size(); }
  void take_back(std::size_t mark);

 private:
  enum class Kind { Floor, Rest, Placed };
  struct Change {
    Kind kind;
    int index, value, held_by;
  };

  void set_floor(int section, int value);
  void set_rest(int b, int value, int held_by);
  void set_dirty(int section);
  bool lift(int b, int to, int section);
  bool settle();
  bool settle(int section);
  bool overflow(int section, int top);

  int capacity_;
  std::vector<Block> blocks_;
  std::vector<std::vector<int>> met_, covering_;  // covering_: by rest, unplaced first
  std::vector<int> floor_, use_, rest_, held_by_;
  std::vector<bool> placed_;
  std::vector<Decisions> why_, old_why_;  // old_why_: a stack beside the floors in changes_
  std::size_t old_count_ = 0;
  std::vector<Change> changes_;
  std::vector<int> dirty_;
  std::vector<bool> is_dirty_;
  Decisions conflict_;
};

}  // namespace aloft

#include "plan/skyline.h"

#include <algorithm>

namespace aloft {

Skyline::Skyline(std::vector<Block> blocks, int sections, int capacity)
    : capacity_(capacity),
      blocks_(std::move(blocks)),
      met_(blocks_.size()),
      covering_(sections),
      floor_(sections, 0),
      use_(sections, 0),
      rest_(blocks_.size(), 0),
      placed_(blocks_.size(), false),
      why_(sections, Decisions(blocks_.size() + 1)),
      is_dirty_(sections, false),
      conflict_(blocks_.size() + 1) {
  for (int b = 0; b < count(); ++b) {
    for (int other = 0; other < count(); ++other)
      if (b != other && blocks_[b].meets(blocks_[other])) met_[b].push_back(other);
    for (int s = blocks_[b].from; s < blocks_[b].to; ++s) {
      covering_[s].push_back(b);
      use_[s] += blocks_[b].size;
    }
    held_by_.push_back(blocks_[b].from);
  }
}

void Skyline::set_floor(int section, int value) {
  changes_.push_back({Kind::Floor, section, floor_[section], 0});
  if (old_count_ == old_why_.size()) old_why_.emplace_back(blocks_.size() + 1);
  old_why_[old_count_++] = why_[section];
  floor_[section] = value;
}

void Skyline::set_dirty(int section) {
  if (is_dirty_[section]) return;
  is_dirty_[section] = true;
  dirty_.push_back(section);
}

void Skyline::set_rest(int b, int value, int held_by) {
  changes_.push_back({Kind::Rest, b, rest_[b], held_by_[b]});
  rest_[b] = value;
  held_by_[b] = held_by;
  for (int s = blocks_[b].from; s < blocks_[b].to; ++s) set_dirty(s);
}

// Block b starts at `to` or higher, because of the floor of `section`.
bool Skyline::lift(int b, int to, int section) {
  if (rest_[b] >= to) return true;
  if (to > capacity_ - blocks_[b].size) {
    conflict_ = why_[section];
    return false;
  }
  set_rest(b, to, section);
  return true;
}

void Skyline::take_back(std::size_t mark) {
  while (changes_.size() > mark) {
    const Change& c = changes_.back();
    if (c.kind == Kind::Floor) {
      floor_[c.index] = c.value;
      std::swap(why_[c.index], old_why_[--old_count_]);
    } else if (c.kind == Kind::Rest) {
      rest_[c.index] = c.value;
      held_by_[c.index] = c.held_by;
    } else {
      placed_[c.index] = false;
      const Block& b = blocks_[c.index];
      for (int s = b.from; s < b.to; ++s) use_[s] += b.size;
    }
    changes_.pop_back();
  }
}

bool Skyline::check_all() {
  for (int s = 0; s < sections(); ++s) set_dirty(s);
  return settle();
}

bool Skyline::place(int b, int at, int decision) {
  const Block& block = blocks_[b];
  const int top = at + block.size;
  placed_[b] = true;
  changes_.push_back({Kind::Placed, b, 0, 0});
  for (int s = block.from; s < block.to; ++s) {
    use_[s] -= block.size;
    set_floor(s, top);
    why_[s].insert(decision);
    set_dirty(s);
  }
  bool ok = true;
  for (int o : met_[b])
    if (ok && !placed_[o]) ok = lift(o, top, std::max(block.from, blocks_[o].from));
  return settle() && ok;
}

bool Skyline::raise(int section, int floor, const Decisions& why) {
  set_floor(section, floor);
  why_[section] = why;
  set_dirty(section);
  return settle();
}

// Draws the conclusions from floors and rests that changed, until there are none.
bool Skyline::settle() {
  bool ok = true;
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    const int s = dirty_[i];
    is_dirty_[s] = false;
    if (ok && use_[s] > 0) ok = settle(s);
  }
  dirty_.clear();
  return ok;
}

bool Skyline::settle(int section) {
  std::vector<int>& blocks = covering_[section];
  const auto key = [&](int b) { return placed_[b] ? kNever : rest_[b]; };
  for (std::size_t i = 1; i < blocks.size(); ++i) {  // nearly sorted since the last time
    const int b = blocks[i], k = key(b);
    std::size_t j = i;
    for (; j > 0 && key(blocks[j - 1]) > k; --j) blocks[j] = blocks[j - 1];
    blocks[j] = b;
  }
  if (rest_[blocks[0]] > floor_[section]) {
    set_floor(section, rest_[blocks[0]]);
    why_[section].clear();
    for (int b : blocks) {
      if (placed_[b]) break;
      why_[section].insert(why_rest(b));
    }
  }
  // As on a machine whose jobs have times of release: the least height at which all can be done.
  int top = floor_[section];
  for (int b : blocks) {
    if (placed_[b]) break;
    if (!lift(b, floor_[section], section)) return false;
    top = std::max(top, rest_[b]) + blocks_[b].size;
  }
  return top <= capacity_ || overflow(section, top);
}

// Why the blocks of a section do not end below `top`: those behind the last gap start too high.
bool Skyline::overflow(int section, int top) {
  const std::vector<int>& blocks = covering_[section];
  conflict_.clear();
  int above = 0;
  for (auto b = blocks.rbegin(); b != blocks.rend(); ++b) {
    if (placed_[*b]) continue;
    if (rest_[*b] <= floor_[section]) break;
    conflict_.insert(why_rest(*b));
    above += blocks_[*b].size;
    if (rest_[*b] + above == top) return false;
  }
  conflict_.insert(why_[section]);
  return false;
}

}  // namespace aloft

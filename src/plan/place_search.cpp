#include "plan/place_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <unordered_set>

namespace aloft {
namespace {

constexpr int kNever = std::numeric_limits<int>::max() / 2;

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// A buffer over sections [from, to): stretches of time between which nothing begins or ends.
struct Block {
  int from, to, size;  // size in units of kAlignment
  bool meets(const Block& o) const { return from < o.to && o.from < to; }
};

// The last buffer that was placed: later ones lie at a higher offset, or at an equal one with a
// higher rank. So each set of offsets is met in one order only.
struct Last {
  int offset = 0, rank = -1;
  bool is_before(int o, int r) const { return o > offset || (o == offset && r > rank); }
};

class Search {
 public:
  Search(std::vector<Block> blocks, int sections, int capacity)
      : capacity_(capacity),
        blocks_(std::move(blocks)),
        met_(blocks_.size()),
        offsets_(blocks_.size()),
        rests_at_(blocks_.size()),
        floor_(sections),
        use_(sections),
        frames_(blocks_.size() + 2) {
    for (int i = 0; i < count(); ++i)
      for (int j = 0; j < count(); ++j)
        if (i != j && blocks_[i].meets(blocks_[j])) met_[i].push_back(j);
    for (Frame& f : frames_) f.lowest.resize(blocks_.size());
  }

  // `ranks`: the order of preference. `by_offset`: low places come before preferred buffers.
  bool run(std::vector<int> ranks, bool by_offset, std::int64_t nodes) {
    rank_ = std::move(ranks);
    by_offset_ = by_offset;
    left_ = nodes;
    failed_.clear();
    std::vector<int> all(blocks_.size());
    std::iota(all.begin(), all.end(), 0);
    std::stable_sort(all.begin(), all.end(),
                     [&](int a, int b) { return blocks_[a].from < blocks_[b].from; });
    std::vector<Part> parts;
    const int n = split(all, -1, parts);
    const std::vector<int> ground(blocks_.size(), 0);
    for (int p = 0; p < n; ++p)
      if (!solve(parts[p], ground, {}, 0)) return false;
    return true;
  }
  const std::vector<int>& offsets() const { return offsets_; }
  // Nodes that the last run did not use.
  std::int64_t left() const { return std::max<std::int64_t>(left_, 0); }
  int count() const { return static_cast<int>(blocks_.size()); }

 private:
  using Part = std::vector<int>;  // blocks still to be placed, by their first section
  struct Frame {
    std::vector<int> lowest, candidates;
    std::vector<Part> parts;
  };

  // Cuts `all` without `skip` where no block spans a boundary; the parts do not touch each other.
  int split(const Part& all, int skip, std::vector<Part>& parts) const {
    int n = 0, end = -1;
    for (int b : all) {
      if (b == skip) continue;
      if (end < 0 || blocks_[b].from >= end) {
        if (static_cast<int>(parts.size()) <= n) parts.emplace_back();
        parts[n++].clear();
      }
      end = std::max(end, blocks_[b].to);
      parts[n - 1].push_back(b);
    }
    return n;
  }

  // Where block b can come to rest at the lowest. One that now lies too low for the order must be
  // held up by a block that is still to come; kNever where there is none.
  int resting_place(const Part& part, int b, const std::vector<int>& lowest, Last last) const {
    if (last.is_before(lowest[b], rank_[b])) return lowest[b];
    if (lowest[b] + blocks_[b].size <= last.offset) return kNever;  // it would have fitted below
    int at = kNever;
    for (int o : part)
      if (o != b && blocks_[o].meets(blocks_[b]))
        at = std::min(at, std::max(lowest[o], last.offset) + blocks_[o].size);
    return at;
  }

  // Whether every section still has room for its blocks above the lowest of them.
  bool has_room(const Part& part, const std::vector<int>& lowest, Last last) {
    int begin = kNever, end = 0;
    for (int b : part) {
      begin = std::min(begin, blocks_[b].from);
      end = std::max(end, blocks_[b].to);
      rests_at_[b] = resting_place(part, b, lowest, last);
      if (rests_at_[b] > capacity_ - blocks_[b].size) return false;
    }
    std::fill(floor_.begin() + begin, floor_.begin() + end, kNever);
    std::fill(use_.begin() + begin, use_.begin() + end, 0);
    for (int b : part)
      for (int s = blocks_[b].from; s < blocks_[b].to; ++s) {
        floor_[s] = std::min(floor_[s], rests_at_[b]);
        use_[s] += blocks_[b].size;
      }
    for (int s = begin; s < end; ++s)
      if (use_[s] > 0 && floor_[s] > capacity_ - use_[s]) return false;
    return true;
  }

  // What a part's future depends on; 64 bits make a wrong match unlikely, and it costs a solution
  // at worst, never a wrong one.
  std::uint64_t key(const Part& part, const std::vector<int>& lowest, Last last) const {
    const auto pair = [](int a, int b) {
      return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32) +
             static_cast<std::uint32_t>(b);
    };
    std::uint64_t k = mixed(pair(last.offset, last.rank + 1));
    for (int b : part) k += mixed(pair(b, lowest[b]) + 0x9e3779b97f4a7c15u);
    return k;
  }

  void find_candidates(const Part& part, const std::vector<int>& lowest, Last last,
                       std::vector<int>& out) const {
    // Whoever lies above the top of another that is still to come leaves room for that one below.
    int top = kNever;
    for (int b : part) top = std::min(top, lowest[b] + blocks_[b].size);
    out.clear();
    for (int b : part)
      if (last.is_before(lowest[b], rank_[b]) && lowest[b] < top) out.push_back(b);
    std::sort(out.begin(), out.end(), [&](int a, int b) {
      if (by_offset_ && lowest[a] != lowest[b]) return lowest[a] < lowest[b];
      return rank_[a] < rank_[b];
    });
  }

  bool solve(const Part& part, const std::vector<int>& lowest, Last last, std::size_t depth) {
    if (--left_ < 0 || !has_room(part, lowest, last)) return false;
    const std::uint64_t state = key(part, lowest, last);
    if (failed_.contains(state)) return false;
    Frame& f = frames_[depth];
    find_candidates(part, lowest, last, f.candidates);
    for (int b : f.candidates) {
      const int at = lowest[b], top = at + blocks_[b].size;
      f.lowest = lowest;
      for (int o : met_[b]) f.lowest[o] = std::max(f.lowest[o], top);
      offsets_[b] = at;
      const Last placed{at, rank_[b]};
      const int n = split(part, b, f.parts);
      bool ok = true;
      for (int p = 0; ok && n > 1 && p < n; ++p) ok = has_room(f.parts[p], f.lowest, placed);
      std::sort(f.parts.begin(), f.parts.begin() + n,
                [](const Part& x, const Part& y) { return x.size() < y.size(); });
      for (int p = 0; ok && p < n; ++p) ok = solve(f.parts[p], f.lowest, placed, depth + 1);
      if (ok) return true;
      if (left_ < 0) return false;
    }
    constexpr std::size_t kMostRemembered = 1 << 20;
    if (failed_.size() < kMostRemembered) failed_.insert(state);
    return false;
  }

  int capacity_;
  std::vector<Block> blocks_;
  std::vector<std::vector<int>> met_;
  std::vector<int> rank_, offsets_, rests_at_, floor_, use_;
  std::vector<Frame> frames_;
  std::unordered_set<std::uint64_t> failed_;
  std::int64_t left_ = 0;
  bool by_offset_ = true;
};

using Key = std::array<double, 3>;

// Orders of preference by length, size, area and the fullest section that a buffer lives in.
std::vector<std::vector<int>> orders_of(std::span<const Lifetime> buffers,
                                        const std::vector<Block>& blocks, int sections) {
  std::vector<double> sum(sections, 0);
  for (const Block& b : blocks)
    for (int s = b.from; s < b.to; ++s) sum[s] += b.size;
  std::vector<std::vector<int>> orders;
  for (int kind = 0; kind < 6; ++kind) {
    std::vector<Key> keys;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Block& b = blocks[i];
      const double length = static_cast<double>(buffers[i].last) - buffers[i].first + 1.0;
      const double spans = b.to - b.from, size = b.size;
      const double full = *std::max_element(sum.begin() + b.from, sum.begin() + b.to);
      const Key all[] = {{length, length * size, full}, {spans * size, size, full},
                         {length * size, full, length}, {full, length, length * size},
                         {spans, size, full},           {full, length * size, length}};
      keys.push_back(all[kind]);
    }
    std::vector<int> order(blocks.size()), rank(blocks.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] > keys[b]; });
    for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<int>(i);
    orders.push_back(std::move(rank));
  }
  return orders;
}

}  // namespace

std::optional<std::vector<std::size_t>> place_within(std::span<const Lifetime> buffers,
                                                     std::size_t capacity, std::int64_t nodes) {
  std::vector<Lifetime> live;
  std::vector<std::size_t> which;
  std::vector<int> times;
  std::size_t total = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].bytes > 0) {
      live.push_back(buffers[i]);
      which.push_back(i);
      times.insert(times.end(), {buffers[i].first, buffers[i].last + 1});
      total += aligned(buffers[i].bytes);
    }
  std::vector<std::size_t> offsets(buffers.size(), 0);
  if (live.empty()) return offsets;
  if (live.size() > kMostSearched || total / kAlignment > static_cast<std::size_t>(kNever))
    return std::nullopt;
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto section = [&](int t) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), t) - times.begin());
  };
  std::vector<Block> blocks;
  blocks.reserve(live.size());
  for (const Lifetime& b : live)
    blocks.push_back(
        {section(b.first), section(b.last + 1), static_cast<int>(aligned(b.bytes) / kAlignment)});
  const int sections = static_cast<int>(times.size()) - 1;
  const auto orders = orders_of(live, blocks, sections);
  Search search(blocks, sections, static_cast<int>(std::min(capacity, total) / kAlignment));
  // Rounds of growing patience: how long an order takes varies far more than the orders differ.
  bool impatient = true;  // some order was given up before its end
  for (std::int64_t patience = 2000; nodes > 0 && impatient; patience *= 4) {
    impatient = false;
    for (const bool by_offset : {true, false})
      for (const auto& order : orders) {
        const std::int64_t most = std::min(nodes, patience);
        if (most <= 0) return std::nullopt;
        if (search.run(order, by_offset, most)) {
          for (std::size_t i = 0; i < which.size(); ++i)
            offsets[which[i]] = static_cast<std::size_t>(search.offsets()[i]) * kAlignment;
          return offsets;
        }
        impatient |= search.left() == 0;
        nodes -= most - search.left();
      }
  }
  return std::nullopt;
}

}  // namespace aloft

#include "plan/lifetime.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <queue>

#include "plan/occupancy.h"
#include "plan/place_search.h"

namespace aloft {
namespace {

bool alive_together(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The same lives, with the points of time at which one begins numbered 0, 1, 2 ...: two are alive
// together at one of these or not at all.
struct Lives {
  std::vector<Lifetime> buffers;
  int times = 0;

  explicit Lives(std::span<const Lifetime> given) : buffers(given.begin(), given.end()) {
    std::vector<int> begins;
    for (const Lifetime& b : given) begins.push_back(b.first);
    std::sort(begins.begin(), begins.end());
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    const auto begun_by = [&](int t) {
      return static_cast<int>(std::upper_bound(begins.begin(), begins.end(), t) - begins.begin());
    };
    for (Lifetime& b : buffers) {
      b.first = begun_by(b.first) - 1;
      b.last = begun_by(b.last) - 1;
    }
    times = static_cast<int>(begins.size());
  }
};

// Places buffers in the given order, each into the lowest gap between those already placed that
// are alive with it. Nothing where that ends at `limit` or above, as most orders soon do, or takes
// more than `looks` looks.
std::optional<Offsets> place_in_order(const Lives& lives, const std::vector<int>& order,
                                      std::size_t limit, std::int64_t looks) {
  Offsets p;
  p.offsets.assign(lives.buffers.size(), 0);
  Occupancy placed(lives.times);
  for (int b : order) {
    const Lifetime& life = lives.buffers[b];
    const std::size_t need = aligned(life.bytes);
    if (need == 0) continue;
    p.offsets[b] = placed.lowest_gap(life.first, life.last, need);
    p.peak = std::max(p.peak, p.offsets[b] + need);
    if (p.peak >= limit || placed.looks() > looks) return std::nullopt;
    placed.take(life.first, life.last, p.offsets[b], need);
  }
  return p;
}

std::size_t largest_live_sum(std::span<const Lifetime> buffers) {
  int end = 0;
  for (const Lifetime& b : buffers) end = std::max(end, b.last + 1);
  std::vector<std::ptrdiff_t> change(end + 1, 0);
  for (const Lifetime& b : buffers) {
    change[b.first] += static_cast<std::ptrdiff_t>(aligned(b.bytes));
    change[b.last + 1] -= static_cast<std::ptrdiff_t>(aligned(b.bytes));
  }
  std::ptrdiff_t live = 0, most = 0;
  for (std::ptrdiff_t c : change) most = std::max(most, live += c);
  return static_cast<std::size_t>(most);
}

// Tries the lower bound first, then halfway up to what is known.
void improve(std::span<const Lifetime> buffers, Offsets& best, std::size_t bound,
             std::int64_t nodes) {
  constexpr int kTries = 3;
  std::size_t target = bound;
  for (int i = 0; i < kTries && bound < best.peak && target < best.peak; ++i) {
    if (auto offsets = place_within(buffers, target, nodes / kTries)) {
      best.offsets = std::move(*offsets);
      best.peak = 0;
      for (std::size_t b = 0; b < buffers.size(); ++b)
        best.peak = std::max(best.peak, best.offsets[b] + aligned(buffers[b].bytes));
    }
    target = aligned(bound + (best.peak - bound) / 2);
  }
}

}  // namespace

Offsets place(std::span<const Lifetime> buffers, std::int64_t nodes) {
  using Better = std::function<bool(const Lifetime&, const Lifetime&)>;
  const auto length = [](const Lifetime& b) { return b.last - b.first; };
  const Better orders[] = {
      [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; },
      [&](const Lifetime& a, const Lifetime& b) {
        return length(a) != length(b) ? length(a) > length(b) : a.bytes > b.bytes;
      },
      [](const Lifetime& a, const Lifetime& b) {
        return a.first != b.first ? a.first < b.first : a.bytes > b.bytes;
      },
      [&](const Lifetime& a, const Lifetime& b) {
        return static_cast<double>(a.bytes) * (length(a) + 1) >
               static_cast<double>(b.bytes) * (length(b) + 1);
      },
  };
  Offsets best;
  best.peak = SIZE_MAX;
  const std::size_t bound = largest_live_sum(buffers);
  const Lives lives(buffers);
  for (const Better& better : orders) {
    std::vector<int> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return better(buffers[a], buffers[b]); });
    const bool is_first = best.offsets.empty();
    const auto looks = is_first ? INT64_MAX : kLooks * static_cast<std::int64_t>(buffers.size());
    if (auto p = place_in_order(lives, order, best.peak, looks)) best = std::move(*p);
    if (best.peak == bound) break;
  }
  improve(buffers, best, bound, nodes);
  best.lower_bound = bound;
  return best;
}

namespace {

// Goes through time with those alive by their offsets: where none overlap, the next one has to be
// compared with its neighbours alone.
bool is_any_overlap(std::span<const Lifetime> buffers, std::span<const std::size_t> offsets) {
  std::vector<int> order;
  for (int b = 0; b < static_cast<int>(buffers.size()); ++b)
    if (buffers[b].bytes > 0) order.push_back(b);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return buffers[a].first < buffers[b].first; });
  std::map<std::size_t, int> alive;  // by offset
  using End = std::pair<int, int>;   // the last instruction, the buffer
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  for (int b : order) {
    if (buffers[b].last < buffers[b].first) return true;  // no life: let the pairs tell
    for (; !ends.empty() && ends.top().first < buffers[b].first; ends.pop())
      alive.erase(offsets[ends.top().second]);
    const auto next = alive.lower_bound(offsets[b]);
    if (next != alive.end() && next->first < offsets[b] + buffers[b].bytes) return true;
    if (next != alive.begin()) {
      const auto [offset, other] = *std::prev(next);
      if (offset + buffers[other].bytes > offsets[b]) return true;
    }
    alive.emplace(offsets[b], b);
    ends.emplace(buffers[b].last, b);
  }
  return false;
}

}  // namespace

std::optional<std::pair<int, int>> find_overlap(std::span<const Lifetime> buffers,
                                                std::span<const std::size_t> offsets) {
  if (!is_any_overlap(buffers, offsets)) return std::nullopt;
  for (int i = 0; i < static_cast<int>(buffers.size()); ++i)
    for (int j = 0; j < i; ++j) {
      if (!alive_together(buffers[i], buffers[j])) continue;
      if (buffers[i].bytes == 0 || buffers[j].bytes == 0) continue;
      if (offsets[i] < offsets[j] + buffers[j].bytes && offsets[j] < offsets[i] + buffers[i].bytes)
        return std::pair{j, i};
    }
  return std::nullopt;
}

}  // namespace aloft

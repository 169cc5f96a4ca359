#include "plan/lifetime.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "plan/place_search.h"

namespace aloft {
namespace {

bool alive_together(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

// Places buffers in the given order, each into the lowest gap between those already placed that
// are alive with it.
Placement place_in_order(std::span<const Lifetime> buffers, const std::vector<int>& order) {
  Placement p;
  p.offsets.assign(buffers.size(), 0);
  std::vector<int> placed;  // sorted by offset
  for (int b : order) {
    const std::size_t need = aligned(buffers[b].bytes);
    std::size_t at = 0;
    if (need > 0)
      for (int other : placed) {
        if (!alive_together(buffers[b], buffers[other])) continue;
        if (p.offsets[other] >= at + need) break;
        at = std::max(at, p.offsets[other] + aligned(buffers[other].bytes));
      }
    p.offsets[b] = at;
    p.peak = std::max(p.peak, at + need);
    if (need == 0) continue;
    const auto by_offset = [&](int x, int y) { return p.offsets[x] < p.offsets[y]; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), b, by_offset), b);
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
void improve(std::span<const Lifetime> buffers, Placement& best, std::size_t bound,
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

Placement place(std::span<const Lifetime> buffers, std::int64_t nodes) {
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
  Placement best;
  const std::size_t bound = largest_live_sum(buffers);
  for (const Better& better : orders) {
    std::vector<int> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return better(buffers[a], buffers[b]); });
    Placement p = place_in_order(buffers, order);
    if (best.offsets.size() != buffers.size() || p.peak < best.peak) best = std::move(p);
    if (best.peak == bound) break;
  }
  improve(buffers, best, bound, nodes);
  best.lower_bound = bound;
  return best;
}

std::optional<std::pair<int, int>> find_overlap(std::span<const Lifetime> buffers,
                                                std::span<const std::size_t> offsets) {
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

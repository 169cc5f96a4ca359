#include "plan/place_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "plan/skyline_search.h"

namespace aloft {
namespace {

struct Instance {
  std::vector<Block> blocks;
  std::vector<double> lengths;     // in the units of the lifetimes
  std::vector<double> fullest;     // the largest sum of sizes that each block lives in
  std::vector<std::size_t> which;  // of the buffers each block is
  int sections = 0;
};

Instance instance_of(std::span<const Lifetime> buffers) {
  Instance in;
  std::vector<int> times;
  for (const Lifetime& b : buffers)
    if (b.bytes > 0) times.insert(times.end(), {b.first, b.last + 1});
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto section = [&](int t) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), t) - times.begin());
  };
  in.sections = times.empty() ? 0 : static_cast<int>(times.size()) - 1;
  std::vector<double> sum(in.sections, 0);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Lifetime& b = buffers[i];
    if (b.bytes == 0) continue;
    const std::size_t size = aligned(b.bytes) / kAlignment;
    in.blocks.push_back({section(b.first), section(b.last + 1), static_cast<int>(size)});
    in.lengths.push_back(static_cast<double>(b.last) - b.first + 1.0);
    in.which.push_back(i);
    for (int s = in.blocks.back().from; s < in.blocks.back().to; ++s)
      sum[s] += static_cast<double>(size);
  }
  for (const Block& b : in.blocks)
    in.fullest.push_back(*std::max_element(sum.begin() + b.from, sum.begin() + b.to));
  return in;
}

constexpr int kOrders = 6;

// Ranks by order number `kind`: by length, size, area or the fullest section, each multiplied by
// its `noise`.
std::vector<int> ranks_of(const Instance& in, int kind, const std::vector<double>& noise) {
  std::vector<std::array<double, 2>> keys;
  for (std::size_t i = 0; i < in.blocks.size(); ++i) {
    const double spans = in.blocks[i].to - in.blocks[i].from, size = in.blocks[i].size;
    const double length = in.lengths[i];
    const std::array<double, 2> all[kOrders] = {
        {length * noise[i], size},        {spans * size * noise[i], size},
        {length * size * noise[i], size}, {in.fullest[i], length * noise[i]},
        {spans * noise[i], size},         {size * noise[i], length}};
    keys.push_back(all[kind]);
  }
  std::vector<int> order(keys.size()), ranks(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] > keys[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) ranks[order[i]] = static_cast<int>(i);
  return ranks;
}

// Factors from 1/3 to 3, as often above 1 as below.
void draw(std::vector<double>& noise, std::mt19937_64& random) {
  const auto uniform = [&] { return std::ldexp(static_cast<double>(random() >> 11), -53); };
  for (double& x : noise) {
    const double above = 1 + 2 * uniform();
    x = above / (1 + 2 * uniform());
  }
}

}  // namespace

std::optional<std::vector<std::size_t>> place_within(std::span<const Lifetime> buffers,
                                                     std::size_t capacity, std::int64_t nodes) {
  const auto is_block = [](const Lifetime& b) { return b.bytes > 0; };
  if (std::count_if(buffers.begin(), buffers.end(), is_block) > kMostSearched) return std::nullopt;
  constexpr std::size_t kMostBytes = static_cast<std::size_t>(Skyline::kNever) * kAlignment;
  std::size_t total = 0;
  for (const Lifetime& b : buffers) {
    if (b.bytes > kMostBytes - total) return std::nullopt;
    total = std::min(total + aligned(b.bytes), kMostBytes);
  }
  const Instance in = instance_of(buffers);
  std::vector<std::size_t> offsets(buffers.size(), 0);
  if (in.blocks.empty()) return offsets;
  SkylineSearch search(in.blocks, in.sections,
                       static_cast<int>(std::min(capacity, total) / kAlignment));
  // Most runs are little more than one attempt without a way back, since how long one takes varies
  // far more than the orders differ; every second, fourth, eighth... round has twice the patience
  // of the one before.
  const std::int64_t patience = 250 + static_cast<std::int64_t>(in.blocks.size());
  std::mt19937_64 random(1);
  std::vector<double> noise(in.blocks.size(), 1.0);
  for (unsigned round = 1; nodes > 0; ++round)
    for (int kind = 0; kind < kOrders && nodes > 0; ++kind) {
      const std::int64_t most = std::min(nodes, patience << std::countr_zero(round));
      std::int64_t left = most;
      if (round > 1) draw(noise, random);
      const Outcome outcome = search.run(ranks_of(in, kind, noise), left);
      nodes -= most - left;
      if (outcome == Outcome::Impossible) return std::nullopt;
      if (outcome == Outcome::OutOfNodes) continue;
      for (std::size_t i = 0; i < in.which.size(); ++i)
        offsets[in.which[i]] = static_cast<std::size_t>(search.offsets()[i]) * kAlignment;
      return offsets;
    }
  return std::nullopt;
}

}  // namespace aloft

// The placement of buffers: random instances against a judge written apart (find_overlap), dense
// ones whose placement is known to exist, and published ones (minimalloc's) where they are there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

#include "data_file.h"
#include "plan/lifetime.h"
#include "plan/occupancy.h"
#include "plan/place_search.h"

namespace aloft {
namespace {

void expect_within(const std::vector<Lifetime>& buffers, const std::vector<std::size_t>& offsets,
                   std::size_t capacity) {
  ASSERT_EQ(offsets.size(), buffers.size());
  EXPECT_FALSE(find_overlap(buffers, offsets));
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(offsets[i] % kAlignment, 0u);
    EXPECT_LE(offsets[i] + buffers[i].bytes, capacity);
  }
}

TEST(Placement, RandomInstances) {
  std::mt19937 random(7);
  for (int instance = 0; instance < 2000; ++instance) {
    std::vector<Lifetime> buffers(1 + random() % 40);
    for (Lifetime& b : buffers) {
      b.first = static_cast<int>(random() % 30);
      b.last = b.first + static_cast<int>(random() % (random() % 4 ? 4 : 30));
      b.bytes = random() % 5 ? random() % 5000 : 0;
    }
    const Offsets p = place(buffers);
    ASSERT_EQ(p.offsets.size(), buffers.size());
    const auto overlap = find_overlap(buffers, p.offsets);
    ASSERT_FALSE(overlap) << instance << ": " << overlap->first << " and " << overlap->second;
    std::size_t end = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      ASSERT_EQ(p.offsets[i] % kAlignment, 0u);
      end = std::max(end, p.offsets[i] + aligned(buffers[i].bytes));
    }
    ASSERT_EQ(end, p.peak);
    ASSERT_GE(p.peak, p.lower_bound);
    ASSERT_EQ(place(buffers).offsets, p.offsets);  // deterministic
  }
}

// Every order of lowest-gap placement of a few buffers: some order gives the smallest peak.
std::size_t smallest_peak(const std::vector<Lifetime>& buffers) {
  std::vector<int> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::size_t best = SIZE_MAX;
  do {
    std::vector<std::size_t> top(16, 0);  // in order of offset, every buffer rests on the skyline
    std::size_t peak = 0;
    for (int b : order) {
      std::size_t at = 0;
      for (int t = buffers[b].first; t <= buffers[b].last; ++t) at = std::max(at, top[t]);
      for (int t = buffers[b].first; t <= buffers[b].last; ++t) top[t] = at + buffers[b].bytes;
      peak = std::max(peak, at + buffers[b].bytes);
    }
    best = std::min(best, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Placement, TheSearchIsExactOnSmallInstances) {
  std::mt19937 random(11);
  for (int instance = 0; instance < 500; ++instance) {
    std::vector<Lifetime> buffers(2 + random() % 6);
    for (Lifetime& b : buffers) {
      b.first = static_cast<int>(random() % 8);
      b.last = b.first + static_cast<int>(random() % 6);
      b.bytes = 64 * (1 + random() % 12);
    }
    const std::size_t best = smallest_peak(buffers);
    const auto offsets = place_within(buffers, best, 100000);
    ASSERT_TRUE(offsets) << instance;
    expect_within(buffers, *offsets, best);
    ASSERT_FALSE(place_within(buffers, best - 64, 2000)) << instance;
  }
}

// What Occupancy answers, by going through all that is taken in the order of offsets.
std::size_t lowest_gap(const std::vector<Lifetime>& taken, const std::vector<std::size_t>& offsets,
                       const Lifetime& b) {
  std::vector<int> order(taken.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int x, int y) { return offsets[x] < offsets[y]; });
  std::size_t at = 0;
  for (int other : order) {
    if (taken[other].first > b.last || b.first > taken[other].last) continue;
    if (offsets[other] >= at + b.bytes) break;
    at = std::max(at, offsets[other] + taken[other].bytes);
  }
  return at;
}

TEST(Placement, TheLowestGapIsFoundWithoutLookingAtEachBuffer) {
  std::mt19937 random(29);
  for (int instance = 0; instance < 300; ++instance) {
    const int times = 1 + static_cast<int>(random() % 70);
    Occupancy occupancy(times);
    std::vector<Lifetime> taken;
    std::vector<std::size_t> offsets;
    for (int i = 0; i < 60; ++i) {
      Lifetime b;
      b.first = static_cast<int>(random() % times);
      b.last = std::min(times - 1, b.first + static_cast<int>(random() % times));
      b.bytes = 1 + random() % 9;
      const std::size_t at = occupancy.lowest_gap(b.first, b.last, b.bytes);
      ASSERT_EQ(at, lowest_gap(taken, offsets, b)) << instance << ": " << i;
      if (random() % 8 == 0) continue;
      // Not always where it fits: what is taken may overlap.
      taken.push_back(b);
      offsets.push_back(random() % 4 ? at : random() % 100);
      occupancy.take(b.first, b.last, offsets.back(), b.bytes);
    }
  }
}

// As a model's layers give them: what the forward pass keeps lives until its layer's backward pass,
// and each of both has some of its own.
std::vector<Lifetime> layers(int count) {
  std::vector<Lifetime> buffers;
  const int end = 20 * count;
  for (int layer = 0; layer < count; ++layer)
    for (int i = 0; i < 10; ++i) {
      const int at = 10 * layer + i, back = end - at;
      const std::size_t bytes = 64 * (1 + static_cast<std::size_t>(i) * 7 % 4);
      buffers.push_back({at, back, bytes});
      buffers.push_back({at, at + 1 + i % 3, 3 * bytes});
      buffers.push_back({back - 1, std::min(end, back + i % 4), 2 * bytes});
    }
  return buffers;
}

TEST(Placement, WhatADeepModelCostsGrowsWithItsBuffers) {
  const auto looks = [](const std::vector<Lifetime>& buffers) {
    Occupancy occupancy(buffers.front().last + 1);
    for (const Lifetime& b : buffers)
      occupancy.take(b.first, b.last, occupancy.lowest_gap(b.first, b.last, b.bytes), b.bytes);
    return occupancy.looks();
  };
  EXPECT_LT(looks(layers(200)), 2.6 * looks(layers(100)));
  const std::vector<Lifetime> deep = layers(800);
  const Offsets p = place(deep);
  EXPECT_FALSE(find_overlap(deep, p.offsets));
  EXPECT_LT(p.peak, p.lower_bound + p.lower_bound / 10);
}

TEST(Placement, TheJudgeSeesEveryOverlapThatPairsShow) {
  std::mt19937 random(31);
  int overlaps = 0;
  for (int instance = 0; instance < 3000; ++instance) {
    std::vector<Lifetime> buffers(2 + random() % 7);
    std::vector<std::size_t> offsets(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      buffers[i].first = static_cast<int>(random() % 12);
      buffers[i].last = buffers[i].first + static_cast<int>(random() % 4);
      buffers[i].bytes = random() % 4;
      offsets[i] = random() % 20;
    }
    std::optional<std::pair<int, int>> first;
    for (int i = 0; i < static_cast<int>(buffers.size()); ++i)
      for (int j = 0; j < i; ++j) {
        const Lifetime &a = buffers[i], &b = buffers[j];
        const bool meet = a.first <= b.last && b.first <= a.last && a.bytes > 0 && b.bytes > 0 &&
                          offsets[i] < offsets[j] + b.bytes && offsets[j] < offsets[i] + a.bytes;
        if (meet && !first) first = std::pair{j, i};
      }
    overlaps += first.has_value();
    ASSERT_EQ(find_overlap(buffers, offsets), first) << instance;
  }
  EXPECT_GT(overlaps, 500);
  EXPECT_LT(overlaps, 2500);
}

TEST(Placement, TheJudgeSeesAnOverlap) {
  const std::vector<Lifetime> buffers{{0, 2, 100}, {2, 3, 100}, {3, 4, 100}};
  EXPECT_FALSE(find_overlap(buffers, std::vector<std::size_t>{0, 128, 0}));
  EXPECT_TRUE(find_overlap(buffers, std::vector<std::size_t>{0, 64, 0}));
}

// Rows "id,lower,upper,size", upper excluded; the capacity is the number in the file's name.
std::vector<Lifetime> read_instance(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::vector<Lifetime> out;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream row(line);
    long id = 0, lower = 0, upper = 0;
    Lifetime b;
    if (row >> id >> lower >> upper >> b.bytes) {
      b.first = static_cast<int>(lower);
      b.last = static_cast<int>(upper) - 1;
      out.push_back(b);
    }
  }
  return out;
}

TEST(Placement, PublishedInstances) {
  const DataFile folder = data_file("minimalloc");
  if (!folder.missing.empty()) GTEST_SKIP() << folder.missing;
  int instances = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    if (entry.path().extension() != ".csv") continue;
    const std::vector<Lifetime> buffers = read_instance(entry.path());
    ASSERT_FALSE(buffers.empty()) << entry.path();
    const std::size_t capacity = std::stoull(entry.path().stem().extension().string().substr(1));
    const auto offsets = place_within(buffers, capacity, 200'000);
    ASSERT_TRUE(offsets) << entry.path();
    expect_within(buffers, *offsets, capacity);
    ++instances;
  }
  EXPECT_GT(instances, 0);
}

// A rectangle of time and memory cut at random: the pieces fill it without a gap.
std::vector<Lifetime> cut_up(int times, int height, std::size_t pieces, std::mt19937& random) {
  struct Piece {
    int from, to, low, high;
    int area() const { return (to - from) * (high - low); }
  };
  std::vector<Piece> all{{0, times, 0, height}};
  while (all.size() < pieces) {
    const auto it = std::max_element(
        all.begin(), all.end(), [](const Piece& a, const Piece& b) { return a.area() < b.area(); });
    Piece& p = *it;
    const bool in_time = p.high - p.low < 2 || (p.to - p.from > 1 && random() % 2);
    Piece rest = p;
    if (in_time)
      rest.from = p.to = p.from + 1 + static_cast<int>(random() % (p.to - p.from - 1));
    else
      rest.low = p.high = p.low + 1 + static_cast<int>(random() % (p.high - p.low - 1));
    all.push_back(rest);
  }
  std::shuffle(all.begin(), all.end(), random);
  std::vector<Lifetime> out;
  for (const Piece& p : all)
    out.push_back({p.from, p.to - 1, static_cast<std::size_t>(p.high - p.low) * kAlignment});
  return out;
}

TEST(Placement, PiecesOfARectangleFillItAgain) {
  std::mt19937 random(3);
  for (int instance = 0; instance < 40; ++instance) {
    const std::vector<Lifetime> buffers = cut_up(60, 100, 10 + instance, random);
    const auto offsets = place_within(buffers, 100 * kAlignment, 200000);
    ASSERT_TRUE(offsets) << instance;
    expect_within(buffers, *offsets, 100 * kAlignment);
    ASSERT_EQ(place_within(buffers, 100 * kAlignment, 200000), offsets);  // deterministic
    ASSERT_FALSE(place_within(buffers, 99 * kAlignment, 200000)) << instance;
  }
}

TEST(Placement, OddInstancesAndCapacities) {
  std::mt19937 random(17);
  int placed = 0;
  for (int instance = 0; instance < 1500; ++instance) {
    std::vector<Lifetime> buffers(random() % 60);
    const int times = 1 + static_cast<int>(random() % 40),
              sizes = 1 + static_cast<int>(random() % 9);
    for (Lifetime& b : buffers) {
      b.first = static_cast<int>(random() % times);
      b.last = b.first + static_cast<int>(random() % times);
      b.bytes = random() % 7 ? 64 * (random() % sizes) + random() % 3 : random() % 100000;
    }
    const std::size_t bound = place(buffers, 0).lower_bound;
    for (const std::size_t capacity : {std::size_t{0}, bound, bound + bound / 10, SIZE_MAX})
      if (const auto offsets = place_within(buffers, capacity, random() % 1000)) {
        expect_within(buffers, *offsets, capacity);
        ++placed;
      }
  }
  EXPECT_GT(placed, 1500);
}

TEST(Placement, ManyBuffersAndHugeOnes) {
  std::mt19937 random(5);
  std::vector<Lifetime> buffers = cut_up(2000, 3000, kMostSearched, random);
  if (const auto offsets = place_within(buffers, 3000 * kAlignment, 3000))
    expect_within(buffers, *offsets, 3000 * kAlignment);
  const auto loose = place_within(buffers, SIZE_MAX, 3000);
  ASSERT_TRUE(loose);
  expect_within(buffers, *loose, SIZE_MAX);
  buffers.push_back({0, 1, 64});
  EXPECT_FALSE(place_within(buffers, SIZE_MAX, 3000));  // beyond kMostSearched
  const std::vector<Lifetime> huge{{0, 2, SIZE_MAX - 10}, {1, 3, SIZE_MAX / 2}, {3, 4, 64}};
  EXPECT_FALSE(place_within(huge, SIZE_MAX, 1000));
}

}  // namespace
}  // namespace aloft

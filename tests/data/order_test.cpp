#include "data/order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"

namespace aloft {
namespace {

TEST(Permutation, IsABijectionForEverySize) {
  for (std::uint64_t n : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 255, 1000, 4096, 4097, 70001}) {
    const Permutation p(n, 7);
    std::vector<bool> seen(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t to = p(i);
      ASSERT_LT(to, n);
      ASSERT_FALSE(seen[to]) << n;
      seen[to] = true;
    }
    EXPECT_THROW(p(n), UserError);
  }
}

TEST(Permutation, HugeDomainsStayInside) {
  const std::uint64_t n = ~std::uint64_t{0} - 12345;
  const Permutation p(n, 3);
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_LT(p(i * 1234567891), n);
}

TEST(Permutation, LooksRandom) {
  // Over many keys, element 0 of a shuffle of 16 lands everywhere about equally often, and two
  // neighbours are neighbours again about as often as chance has it (2/16).
  constexpr int kKeys = 16000;
  std::vector<int> count(16);
  int neighbours = 0;
  for (int key = 0; key < kKeys; ++key) {
    const Permutation p(16, static_cast<std::uint64_t>(key));
    ++count[p(0)];
    neighbours += std::abs(static_cast<int>(p(4)) - static_cast<int>(p(5))) == 1;
  }
  // Five deviations of counts.
  for (int c : count) EXPECT_NEAR(c, kKeys / 16, 5 * std::sqrt(kKeys / 16.0));
  EXPECT_NEAR(neighbours, kKeys * 30 / 240, 5 * std::sqrt(kKeys / 8.0));
}

TEST(BatchWalk, WrapFillsEveryBatch) {
  const BatchWalk walk(10, 4, LastBatch::Wrap, 2);
  EXPECT_EQ(walk.rows_at(8), 4u);
  EXPECT_EQ(walk.sample(8, 1), (SampleIndex{0, 9}));
  EXPECT_EQ(walk.sample(8, 2), (SampleIndex{1, 0}));
  EXPECT_EQ(walk.rows_at(16), 4u);
  EXPECT_EQ(walk.rows_at(20), 0u);
  EXPECT_EQ(walk.batches_per_epoch(), 3u);
  for (std::uint64_t batches = 0; batches < 9; ++batches) {
    EXPECT_EQ(walk.rounds_at(4 * batches), batches / 3);
    EXPECT_EQ(walk.batches_left(4 * batches), 3 - batches % 3);
  }
}

TEST(BatchWalk, KeepEndsShortAndDropLeavesOut) {
  const BatchWalk keep(10, 4, LastBatch::Keep, 2);
  EXPECT_EQ(keep.rows_at(8), 2u);
  EXPECT_EQ(keep.rows_at(10), 4u);
  EXPECT_EQ(keep.sample(10, 0), (SampleIndex{1, 0}));
  EXPECT_EQ(keep.rows_at(20), 0u);
  EXPECT_EQ(keep.batches_left(0), 3u);
  EXPECT_EQ(keep.batches_left(8), 1u);
  EXPECT_EQ(keep.rounds_at(9), 0u);
  EXPECT_EQ(keep.rounds_at(10), 1u);
  EXPECT_EQ(keep.batches_left(10), 3u);
  const BatchWalk drop(10, 4, LastBatch::Drop, 2);
  EXPECT_EQ(drop.rows_at(4), 4u);
  EXPECT_EQ(drop.sample(8, 0), (SampleIndex{1, 0}));
  EXPECT_EQ(drop.rows_at(16), 0u);
  EXPECT_EQ(drop.batches_per_epoch(), 2u);
  EXPECT_EQ(drop.batches_left(4), 1u);
  EXPECT_EQ(drop.rounds_at(8), 1u);
  EXPECT_EQ(drop.batches_left(8), 2u);
}

TEST(BatchWalk, RefusesAnEpochWithoutABatch) {
  EXPECT_THROW(BatchWalk(3, 4, LastBatch::Drop), UserError);
  EXPECT_THROW(BatchWalk(0, 4, LastBatch::Keep), UserError);
  EXPECT_THROW(BatchWalk(3, 0, LastBatch::Wrap), UserError);
  EXPECT_EQ(BatchWalk(3, 4, LastBatch::Wrap).rows_at(1'000'000), 4u);  // no end
}

TEST(WindowOrder, InOrderCoversEveryTargetOnce) {
  for (std::uint64_t tokens : {2, 5, 8, 9, 10, 16, 17, 33}) {
    const WindowOrder order(tokens, 8, {.shuffle = false});
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < order.samples_per_epoch(); ++i) {
      const Window w = order.at({0, i});
      EXPECT_EQ(w.first, next);
      EXPECT_GE(w.length, 1u);
      next = w.first + w.length;
    }
    EXPECT_EQ(next, tokens - 1) << tokens;  // inputs 0 .. tokens-2, so targets 1 .. tokens-1
  }
}

TEST(WindowOrder, ShuffledEpochsCoverAllButTheSpareTokens) {
  const std::uint64_t tokens = 8 * 100 + 1 + 5;
  const WindowOrder order(tokens, 8, {.seed = 3});
  std::vector<int> ever(tokens);
  for (std::uint64_t epoch = 0; epoch < 60; ++epoch) {
    std::vector<int> times(tokens);
    for (std::uint64_t i = 0; i < order.samples_per_epoch(); ++i) {
      const Window w = order.at({epoch, i});
      ASSERT_EQ(w.length, 8u);
      ASSERT_LT(w.first + w.length, tokens);
      for (std::uint64_t k = 0; k < w.length; ++k) ++times[w.first + k];
    }
    int covered = 0;
    for (std::uint64_t t = 0; t < tokens; ++t) {
      ASSERT_LE(times[t], 1);
      covered += times[t];
      ever[t] += times[t];
    }
    EXPECT_EQ(covered, 800);
  }
  for (std::uint64_t t = 0; t + 1 < tokens; ++t) EXPECT_GT(ever[t], 0) << t;
  EXPECT_NE(order.at({0, 0}).first, order.at({1, 0}).first);
  EXPECT_EQ(order.at({7, 3}), WindowOrder(tokens, 8, {.seed = 3}).at({7, 3}));
}

TEST(WindowOrder, RandomOffsetsAreUniformUpToTheLastPossibleOne) {
  const WindowOrder order(13, 8, {.sampling = Sampling::Random, .seed = 5});
  std::vector<int> count(5);  // offsets 0 .. 4, as torch.randint(len(data) - block_size)
  for (std::uint64_t epoch = 0; epoch < 5000; ++epoch) {
    const Window w = order.at({epoch, 0});
    ASSERT_LT(w.first, 5u);
    ASSERT_EQ(w.length, 8u);
    ++count[w.first];
  }
  // Five deviations of a count.
  for (int c : count) EXPECT_NEAR(c, 1000, 5 * std::sqrt(1000.0));
}

// What is asked for that is not there is the caller's mistake.
TEST(Order, RefusesWhatLiesBeyond) {
  const auto code = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const UserError& e) {
      return e.code();
    }
    return "";
  };
  EXPECT_EQ(code([] { Permutation(0, 1); }), "E0532");
  EXPECT_EQ(code([] { Permutation(5, 1)(5); }), "E0532");
  const WindowOrder order(17, 8, {});
  EXPECT_EQ(code([&] { order.at({0, 2}); }), "E0532");
  EXPECT_EQ(code([&] { order.at({0, ~std::uint64_t{0}}); }), "E0532");
  EXPECT_EQ(code([&] { order.at({~std::uint64_t{0}, 1}); }), "");
}

TEST(WindowOrder, RefusesTooLittleText) {
  EXPECT_THROW(WindowOrder(8, 8, {}), DataError);
  EXPECT_THROW(WindowOrder(8, 8, {.sampling = Sampling::Random}), DataError);
  EXPECT_THROW(WindowOrder(1, 8, {.shuffle = false}), DataError);
  EXPECT_THROW(WindowOrder(100, 0, {}), DataError);
  for (const std::uint64_t most :
       {~std::uint64_t{0}, ~std::uint64_t{0} - 1, std::uint64_t{1} << 63})
    for (const Sampling sampling : {Sampling::Windows, Sampling::Random}) {
      EXPECT_THROW(WindowOrder(100, most, {.sampling = sampling}), DataError) << most;
      EXPECT_THROW(WindowOrder(0, most, {.sampling = sampling}), DataError) << most;
      EXPECT_THROW(WindowOrder(most, most, {.sampling = sampling}), DataError) << most;
    }
  EXPECT_EQ(WindowOrder(100, ~std::uint64_t{0}, {.shuffle = false}).at({0, 0}), (Window{0, 99}));
  EXPECT_EQ(WindowOrder(9, 8, {}).samples_per_epoch(), 1u);
}

}  // namespace
}  // namespace aloft
